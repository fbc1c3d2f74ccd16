package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/look"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/run"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/preview"
	"github.com/ibwarden/ibwarden/internal/migrate/opensm"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// Plan is what a takeover of a fabric would do.
type Plan struct {
	Switches int `json:"switches"`
	CAs      int `json:"cas"`
	Routers  int `json:"routers"`
	Links    int `json:"links"`
	// Faults counts places that could not be read.
	Faults int `json:"faults"`
	*opensm.Takeover
	// Managers are those that the fabric has now, and Handover says how it comes to ibwarden.
	Managers []SubnetManager `json:"managers"`
	Handover []string        `json:"handover"`
	// Roots are switches of root_guid_file that the fabric does not have.
	MissingRoots []string `json:"missing_roots"`
	Warnings     []string `json:"warnings"`
	// Preview has the changes of each port.
	Preview *preview.Preview `json:"plan"`
}

// SubnetManager is a subnet manager of the fabric.
type SubnetManager struct {
	Name     string      `json:"name"`
	Port     ib.PortGUID `json:"port_guid"`
	State    string      `json:"state"`
	Priority uint8       `json:"priority"`
}

// plan reads the fabric, and works out what a takeover would do.
func (f *migrateCommand) plan(c *cobra.Command, r *opensm.Report) (*Plan, error) {
	config, err := configOf(r)
	if err != nil {
		return nil, err
	}
	to, reads, err := f.open(c)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	if reads.MKey == 0 && reads.Keys == nil {
		reads.MKey = ib.MKey(r.MKey)
	}
	o := config.Reading(r.Policy)
	o.Keys, o.MKey = reads.Keys, reads.MKey
	managers, faults, fabric, err := daemon.FabricManagers(c.Context(), to, o, terminal.ReadingProgress(c.ErrOrStderr()))
	if err != nil {
		return nil, terminal.WithBad(err)
	}
	for i, x := range faults {
		if i == rowsMax {
			fmt.Fprintln(c.ErrOrStderr(), "ibwarden: more of the same is not shown")
			break
		}
		fmt.Fprintln(c.ErrOrStderr(), "ibwarden:", terminal.Plain(x))
	}
	look.SayGuarded(c.ErrOrStderr(), fabric, false)
	config.Known.LIDs = known(fabric, r, config.LMC)
	ring := daemon.ThrowAwayKeys() // that there are keys counts, not which
	config.Keys = &mkey.KeyingConfig{Keys: mkey.Keys{Ring: ring.Ring, Book: ring.Book}}
	want, err := desired.Predict(config.Desired(fabric), r.Policy)
	if err != nil {
		return nil, terminal.WithMisuse(fmt.Errorf("the policy does not fit this fabric: %w", err))
	}
	writes := plan.Diff(fabric, want.Tables)
	view, err := migrateLook(fabric, want, writes)
	if err != nil {
		return nil, terminal.WithBad(err)
	}
	n := fabric.Count()
	p := &Plan{Switches: n.Switches, CAs: n.CAs, Routers: n.Routers, Links: n.Links, Faults: len(faults), Preview: view,
		Takeover: opensm.Look(fabric, want.Tables, writes, view, true), Warnings: append([]string{}, want.Warnings...), MissingRoots: []string{}}
	p.managers(fabric, managers, r)
	for _, guid := range r.RootGUIDs {
		if n := fabric.Node(ib.NodeGUID(guid)); n == nil || n.Switch == nil {
			p.MissingRoots = append(p.MissingRoots, ib.NodeGUID(guid).String())
		}
	}
	return p, nil
}

// configOf is what the engine is told, as far as it decides what is written.
func configOf(r *opensm.Report) (engine.Config, error) {
	config := engine.Config{Seed: daemon.Secret(), Profile: protect.Tenant, Reregister: true, Workers: daemon.Workers()}
	routes := map[string]string{"routing": "updn"}
	for _, s := range r.Configuration {
		switch s.Key {
		case "lmc":
			n, err := strconv.ParseUint(s.Value, 0, 8)
			if err != nil {
				return config, terminal.WithMisuse(fmt.Errorf("lmc: %w", err))
			}
			config.LMC = ib.LMC(n)
		case "routing", "lfts-file":
			routes[s.Key] = s.Value
		}
	}
	flags := run.RoutingOf(routes["routing"], routes["lfts-file"])
	if err := flags.Load(); err != nil {
		return config, err
	}
	config.Routing, config.RoutingFile = flags.Engine, flags.Tables
	return config, nil
}

// known are the LIDs of guid2lid of ports that the fabric does not show, unless one that it shows
// has them now: whoever is there keeps what it has. No others are written to a state file.
func known(f *observed.Fabric, r *opensm.Report, lmc ib.LMC) map[ib.PortGUID]ib.LID {
	there, held := map[ib.PortGUID]bool{}, map[ib.LID]bool{}
	for _, q := range f.EndPorts() {
		if !q.InfoRead || q.Info.LID == 0 {
			continue
		}
		there[q.GUID] = true
		for i := range q.Info.LMC.Count() {
			held[q.Info.LID+ib.LID(i)] = true
		}
	}
	out := map[ib.PortGUID]ib.LID{}
	for guid, lid := range r.LIDs {
		free := !there[ib.PortGUID(guid)]
		for i := range lmc.Count() {
			free = free && !held[ib.LID(lid)+ib.LID(i)]
		}
		if free {
			out[ib.PortGUID(guid)] = ib.LID(lid)
		} else {
			delete(r.LIDs, guid)
		}
	}
	return out
}

func migrateLook(f *observed.Fabric, want *desired.Result, writes *plan.Plan) (*preview.Preview, error) {
	in := preview.Input{Fabric: f, Desired: want.Tables, Plan: writes, Partitions: want.Resolution.Partitions}
	groups, err := want.Groups()
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		in.Groups = append(in.Groups, preview.Set{Name: g.Name, Ports: g.Ports})
	}
	return preview.Look(in)
}

// managers says who manages the fabric, and how it comes to ibwarden.
func (p *Plan) managers(f *observed.Fabric, list []observed.SubnetManager, r *opensm.Report) {
	priority := uint64(0)
	for _, s := range r.Configuration {
		if s.Key == "priority" {
			priority, _ = strconv.ParseUint(s.Value, 0, 8)
		}
	}
	p.Managers, p.Handover = []SubnetManager{}, []string{}
	for i := range list {
		m := &list[i]
		state := "silent"
		if m.Answered {
			state = m.State.String()
		}
		p.Managers = append(p.Managers, SubnetManager{m.Name, m.Port, state, m.Priority})
		if f.Self != nil && m.Port == f.Self.GUID {
			p.Handover = append(p.Handover, fmt.Sprintf("%s manages from this very port: stop it before ibwarden starts here, since a port has one manager", m.Name))
			continue
		}
		if !m.Answered || m.State != smp.SMMaster {
			continue
		}
		rank := fmt.Sprintf("a priority above %d; ibwarden.yaml has %d", m.Priority, priority)
		if f.Self != nil && f.Self.GUID < m.Port {
			rank = fmt.Sprintf("a priority of %d or more, since this port's GUID is the lower one; ibwarden.yaml has %d", m.Priority, priority)
		} else if m.Priority == priorityMax {
			rank = fmt.Sprintf("a lower one there: it has %d, the highest, and the lower GUID", priorityMax)
		}
		p.Handover = append(p.Handover, fmt.Sprintf("%s at %v is master: it hands over to a manager that shows its SM_Key (sm-key) and ranks higher (%s), if ibwarden runs with --trusted-sm %v; or stop it first", m.Name, m.Port, rank, m.Port))
	}
	if !slices.ContainsFunc(p.Managers, func(m SubnetManager) bool { return m.State == smp.SMMaster.String() }) {
		p.Handover = append(p.Handover, "no manager is master: ibwarden becomes master when it starts")
	}
}

// priorityMax is the highest priority of a manager.
const priorityMax = 15

// rowsMax is how many rows of a kind are printed.
const rowsMax = 20

// print prints a plan for people, with every write if that is asked for.
func (p *Plan) print(w io.Writer, writes bool) error {
	o := &printer{w: w}
	o.say("takeover of a fabric of %d switches, %d CAs, %d routers and %d links (nothing was written to it):", p.Switches, p.CAs, p.Routers, p.Links)
	o.say("  LIDs: %d stay, %d change, %d new", p.LIDs.Stay, len(p.LIDs.Changes), p.LIDs.New)
	for i, x := range p.LIDs.Changes {
		if i == rowsMax {
			o.say("    and %d more (--json has all)", len(p.LIDs.Changes)-i)
			break
		}
		o.say("    %s: %d to %d", x.Port, x.From, x.To)
	}
	o.say("  routes: %d entries of forwarding tables stay, %d change, %d new", p.Routes.Stay, p.Routes.Changes, p.Routes.New)
	o.say("  paths from host to host: %d stay, %d change, %d new", p.Paths.Stay, p.Paths.Changes, p.Paths.New)
	o.say("  P_Keys of end ports: %d stay, %d added, %d removed, %d change membership, %d change index", p.PKeys.Stay, p.PKeys.Added, p.PKeys.Removed, p.PKeys.Membership, p.PKeys.Moved)
	o.say("  switch ports: %d begin to check P_Keys, %d check less", p.Checks.Begin, p.Checks.End)
	o.say("  links: none is taken down, %d brought up", p.LinksUp)
	o.say("  M_Keys: each of %s gets one of its own", terminal.Count(p.OwnKeys, "end port"))
	o.say("who would notice:")
	o.say("  P_Key tables of %s change%s", terminal.Count(len(p.Notice.Keys), "end port"), migrateNamed(p.Notice.Keys))
	o.say("  %s asked to register with subnet administration again, %d told of another manager", terminal.Count(p.Notice.Reregister, "host"), p.Notice.Manager)
	o.say("  packets from %s take another way to some host", terminal.Count(p.Notice.Paths, "host"))
	o.say("managers of the fabric:")
	for _, m := range p.Managers {
		o.say("  %s at %v: %s, priority %d", m.Name, m.Port, m.State, m.Priority)
	}
	for _, text := range p.Handover {
		o.say("  %s", text)
	}
	for _, guid := range p.MissingRoots {
		o.say("note: root_guid_file names %s, and no switch of the fabric is that", guid)
	}
	for _, text := range p.Warnings {
		o.say("note: %s", text)
	}
	counts, stages := map[string]int{}, []string{}
	for _, x := range p.Writes {
		if counts[x.Stage]++; counts[x.Stage] == 1 {
			stages = append(stages, x.Stage)
		}
		if writes {
			o.say("  write: %s: %s of %s %s", x.Stage, x.Attribute, x.Port, x.What)
		}
	}
	o.say("writes: %d, and %d of M_Keys before them", len(p.Writes), p.OwnKeys)
	for _, stage := range stages {
		o.say("  %s: %d", stage, counts[stage])
	}
	return o.err
}

func migrateNamed(list []string) string {
	switch {
	case len(list) == 0:
		return ""
	case len(list) > rowsMax:
		return fmt.Sprintf(": %s and %d more", strings.Join(list[:rowsMax], ", "), len(list)-rowsMax)
	}
	return ": " + strings.Join(list, ", ")
}

var errNoFabric = errors.New("--writes lists the writes of a takeover: want --fabric too")
