// This file shows the subnet managers of a fabric to callers of the API and to
// commands: what is known of each, and what became of a handover.

package views

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/service"
)

// ManagersSource is a running subnet manager, which knows the others.
type ManagersSource interface {
	// Managers asks every manager for its state, and says what is known of each.
	Managers(ctx context.Context) ([]observed.SubnetManager, error)
	// ProvedRevision is the last revision that this manager has proved; false for none.
	ProvedRevision() (uint64, bool)
	// Standby is who would be handed the subnet: the manager at a port, or for 0 the
	// best. The error is a *service.NotHandedOver where nobody would.
	Standby(ctx context.Context, to ib.PortGUID) (*observed.SubnetManager, error)
	// HandOver hands the subnet over, and reports whether the other one says that it is
	// master. The error is a *service.NotHandedOver where it is not handed over.
	HandOver(ctx context.Context, to ib.PortGUID) (master bool, err error)
}

// SubnetManager is a subnet manager of the fabric.
type SubnetManager struct {
	Port     string     `json:"port" doc:"GUID of its port"`
	Node     string     `json:"node" doc:"what the node says of itself"`
	NodeGUID string     `json:"node_guid"`
	PortNum  int        `json:"port_num"`
	LID      int        `json:"lid"`
	Self     bool       `json:"self" doc:"it is the one that answers this request"`
	State    string     `json:"state" enum:"master,standby,discovering,not-active,unknown" doc:"of its SMInfo; unknown where it has not answered"`
	Priority *int       `json:"priority,omitempty" doc:"its rank, 0 to 15"`
	Acting   *bool      `json:"acting,omitempty" doc:"whether its ActCount was another at its last answer than at the one before"`
	Trust    string     `json:"trust" enum:"self,shared,listed,none,unknown" doc:"shared: it has proved that it shares the secret; listed: named by --trusted-sm; none: it does not count"`
	Policy   string     `json:"policy,omitempty" enum:"same,other,unknown" doc:"of one that shares the secret: whether the policy in force there is that of the one that answers, by what it has proved; an older version proves nothing"`
	ShowsKey bool       `json:"shows_sm_key" doc:"there was an SM_Key in its answer; no key is told"`
	Why      string     `json:"why,omitempty" doc:"why it does not count"`
	LastSeen *time.Time `json:"last_seen,omitempty" doc:"when it answered last"`
	Missed   int        `json:"missed" doc:"requests that it has not answered since"`
	EndPorts int        `json:"end_ports" doc:"end ports that name it as their master"`
	Epoch    *uint64    `json:"epoch,omitempty" doc:"of the store, for the manager that writes it"`
	Proved   *uint64    `json:"proved_revision,omitempty" doc:"the last revision that was proved: in this run for the one that answers, in the store for another that writes it"`
	Store    string     `json:"store,omitempty" doc:"where it keeps tenants and policy, where that is known: its own, or the one that it shares"`
	Owner    string     `json:"owner,omitempty" doc:"how the store knows its writer"`
	Held     string     `json:"held,omitempty" doc:"of the one that answers: why it gives no port anything new and takes no changes: its store was rolled back, and the revisions that are missing in it"`
}

// SubnetManagerOf is a manager as it is told of.
func SubnetManagerOf(m *observed.SubnetManager, now time.Time) SubnetManager {
	out := SubnetManager{
		Port: m.Port.String(), Node: m.Name, NodeGUID: m.Node.String(), PortNum: int(m.Num), LID: int(m.LID), Self: m.Trust == observed.TrustSelf,
		State: "unknown", Trust: string(m.Trust), Policy: string(m.Policy), ShowsKey: m.ShowsKey, Why: m.Why, Missed: m.Missed,
	}
	if m.Answered {
		priority, seen := int(m.Priority), now.Add(-m.Silent).UTC().Truncate(time.Second)
		out.State, out.Priority, out.LastSeen = stateName(m.State), &priority, &seen
	}
	if m.Compared {
		acting := m.Moving
		out.Acting = &acting
	}
	return out
}

func stateName(s smp.SMState) string {
	switch s {
	case smp.SMMaster:
		return "master"
	case smp.SMStandby:
		return "standby"
	case smp.SMDiscovering:
		return "discovering"
	case smp.SMNotActive:
		return "not-active"
	}
	return "unknown"
}

// WithNamed counts the end ports that name a manager as their master. Ports that are
// named, and have no manager behind them, are added.
func WithNamed(list []SubnetManager, f *observed.Fabric) []SubnetManager {
	named := map[ib.LID]int{}
	for _, p := range f.EndPorts() {
		if p.Info.MasterSMLID != 0 {
			named[p.Info.MasterSMLID]++
		}
	}
	for _, p := range f.EndPorts() {
		n := named[p.Info.LID]
		if n == 0 {
			continue
		}
		i := slices.IndexFunc(list, func(m SubnetManager) bool { return m.Port == p.GUID.String() && m.PortNum == int(p.Num) })
		if i < 0 {
			i = len(list)
			list = append(list, SubnetManager{
				Port: p.GUID.String(), Node: p.Node.Name(), NodeGUID: p.Node.GUID().String(), PortNum: int(p.Num), LID: int(p.Info.LID),
				State: "unknown", Trust: string(observed.TrustNone), Why: "end ports name it as their master, and it says of itself that no manager is there",
			})
		}
		list[i].EndPorts = n
	}
	return list
}

// HandOverBody says to whom.
type HandOverBody struct {
	To string `json:"to,omitempty" maxLength:"64" doc:"port GUID, node GUID or node description (or its first word) of the standby; the one that ranks highest where it is not given"`
}

// HandedOver is what became of a handover.
type HandedOver struct {
	To     SubnetManager `json:"to" doc:"who was handed the subnet, as it was before"`
	DryRun bool          `json:"dry_run,omitempty" doc:"nothing was handed over"`
	Master bool          `json:"master" doc:"it has answered that it is master; otherwise it took the subnet and has not said so in time"`
	Text   string        `json:"text" doc:"what happened, in a sentence"`
}

// SubnetManagers is everything that is known of managers: what the source knows, what the service
// knows of the writer of its store, which is called store, and whom end ports name.
func SubnetManagers(ctx context.Context, from ManagersSource, s *service.Service, store string, f *observed.Fabric) ([]SubnetManager, error) {
	known, err := from.Managers(ctx)
	if err != nil {
		return nil, err
	}
	now, standing := time.Now(), s.Standing(ctx)
	list := make([]SubnetManager, 0, len(known))
	for i := range known {
		m := SubnetManagerOf(&known[i], now)
		switch {
		case m.Self:
			m.Store = store
			if back := s.Back(); back != nil {
				m.Held = back.Error()
			}
			if revision, some := from.ProvedRevision(); some {
				m.Proved = &revision
			}
			if standing.Leads {
				m.Epoch, m.Owner = epochOf(standing), standing.Owner
			}
		case standing.Shared && !standing.Leads && known[i].IsMaster() && known[i].Trust == observed.TrustShared:
			m.Store, m.Epoch, m.Owner = store, epochOf(standing), standing.Owner
			if revision, some := s.Proved(ctx); some {
				m.Proved = &revision
			}
		}
		list = append(list, m)
	}
	return WithNamed(list, f), nil
}

func epochOf(s service.Standing) *uint64 {
	if s.Epoch == 0 {
		return nil
	}
	epoch := uint64(s.Epoch)
	return &epoch
}

// What a text that names a manager may be at fault of.
var (
	ErrNobody  = errors.New("no other subnet manager has this port GUID, node GUID or node description")
	ErrSeveral = errors.New("several subnet managers have it: want a port GUID")
)

// ManagerMeant is the port of the manager that a text names; 0 for none. The error is ErrNobody,
// ErrSeveral, or that of the source.
func ManagerMeant(ctx context.Context, from ManagersSource, text string) (ib.PortGUID, error) {
	if text == "" {
		return 0, nil
	}
	list, err := from.Managers(ctx)
	if err != nil {
		return 0, err
	}
	var found []*observed.SubnetManager
	for i := range list {
		if m := &list[i]; m.Trust != observed.TrustSelf && (strings.EqualFold(text, m.Port.String()) || strings.EqualFold(text, m.Node.String()) || called(m.Name, text)) {
			found = append(found, m)
		}
	}
	switch {
	case len(found) == 0:
		return 0, ErrNobody
	case len(found) > 1:
		return 0, ErrSeveral
	}
	return found[0].Port, nil
}

// called reports whether a text is a node description, or its first word.
func called(description, text string) bool {
	first, _, _ := strings.Cut(description, " ")
	return text == description || text == first
}
