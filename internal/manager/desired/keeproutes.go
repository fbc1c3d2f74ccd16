package desired

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/internal/observed"
)

// ErrRoutes means that a change needs other routes, which Result.KeepRoutes excludes.
var ErrRoutes = errors.New("the routes would have to change, and are to stay as they are")

// KeepRoutes takes the forwarding tables out of what is desired: nobody has read them.
// It refuses where that cannot be: where a LID comes, goes or changes, where the range of a
// table is not that of the LIDs, and where the policy has a say in routes. Which exit a
// table gives cannot be told.
func (r *Result) KeepRoutes() error {
	f := r.in.Fabric
	switch {
	case r.Routes.UsesLanes():
		return fmt.Errorf("%w: they use virtual lanes, which were made for the routes of this routing engine", ErrRoutes)
	case r.Routes.Drains():
		return fmt.Errorf("%w: the policy drains switches", ErrRoutes)
	case r.Settings.MasterSMLID != 0:
		return fmt.Errorf("%w: they lead LID %v (master_sm_lid) to the manager, wherever that is", ErrRoutes, r.Settings.MasterSMLID)
	}
	for _, p := range f.EndPorts() {
		want := r.Tables.Port(p)
		newLID := want.Elements&observed.ElementLID != 0 && want.Info.LID != p.Info.LID
		newLMC := want.Elements&observed.ElementLMC != 0 && want.Info.LMC != p.Info.LMC
		if newLID || newLMC {
			return fmt.Errorf("%w: %s has LID %v with LMC %d and is to have LID %v with LMC %d",
				ErrRoutes, p, p.Info.LID, p.Info.LMC, want.Info.LID, want.Info.LMC)
		}
	}
	for i, n := range f.Nodes {
		if n.Switch == nil {
			continue
		}
		want, info := &r.Tables.Nodes[i], &n.Switch.Info
		switch top := len(want.LFT) - 1; {
		case top >= 0 && top != int(info.LinearFDBTop):
			return fmt.Errorf("%w: the forwarding table of %s ends at LID %v and is to end at LID %d", ErrRoutes, &n.Ports[0], info.LinearFDBTop, top)
		case want.RFT != nil && want.DefaultPort != info.DefaultPort:
			return fmt.Errorf("%w: DefaultPort of %s is %d and is to be %d", ErrRoutes, &n.Ports[0], info.DefaultPort, want.DefaultPort)
		}
		want.LFT, want.RFT = nil, nil
	}
	r.Warnings = append(r.Warnings, "forwarding tables were not read and stay as they are: whether they lead everywhere is not known")
	return nil
}
