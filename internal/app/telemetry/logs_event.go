package telemetry

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// EventDescription is an event as it goes into the log.
type EventDescription struct {
	Level slog.Level
	// Kind names the event for programs: it is stable.
	Kind  string
	Text  string
	Attrs []slog.Attr
	// Reporter is whose word it is, where that is a port's.
	Reporter string
	// Stands reports whether every pass says it again while it is so.
	Stands bool
	// Each reports whether none is left out, however many there are.
	Each bool
}

// Describe returns the level, name and attributes of an event. What a manager does about
// an event is debug; what an administrator may have to act on is a warning; what keeps
// the policy from being enforced is an error.
func Describe(e event.Event) EventDescription {
	d := EventDescription{Level: slog.LevelInfo, Text: e.String()}
	switch e := e.(type) {
	case event.PhaseBegun:
		d.set(slog.LevelDebug, "phase", slog.String("phase", e.Phase))
		if d.Text, d.Each = e.Phase+" ...", true; e.Phase == event.PhasePause {
			d.Level = slog.LevelInfo // it keeps people waiting
		}
	case event.Found:
		c := e.Counts
		d.set(slog.LevelDebug, "found", slog.Int("nodes", c.Nodes), slog.Int("switches", c.Switches), slog.Int("cas", c.CAs), slog.Int("routers", c.Routers), slog.Int("links", c.Links))
	case event.SweepFault:
		d.set(slog.LevelWarn, "fault", slog.String("where", e.Fault.Where), port("port", e.Fault.Port), slog.String("reason", e.Fault.Err.Error()))
	case event.Warned:
		d.set(slog.LevelWarn, "warning")
		d.Stands = true
	case event.Routed:
		d.set(slog.LevelInfo, "routing", slog.Any("notes", e.Notes))
		d.Each = true
	case event.Refused:
		d.set(slog.LevelError, "refused", slog.String("reason", e.Err.Error()))
		d.Text, d.Each = strings.ReplaceAll(d.Text, "\n", "; "), true
	case event.PolicyGiven:
		d.set(slog.LevelDebug, "policy-given")
	case event.Failed:
		d.set(slog.LevelError, "write-failed", port("port", e.Failure.Port), slog.String("attribute", smp.AttributeName(e.Failure.Attribute)), slog.String("reason", e.Failure.Err.Error()))
	case event.Forgotten:
		d.set(slog.LevelWarn, "forgotten", slog.Any("elements", e.Elements.Names()), slog.Int("ports", e.Ports), slog.String("example", e.Example))
	case event.Fenced:
		d.set(slog.LevelError, "fenced", fenced(e.Fence)...)
		d.Each = true
	case event.Unfenced:
		d.set(slog.LevelWarn, "unfenced", fenced(e.Fence)...)
		d.Each = true
	case event.Learned:
		d.set(slog.LevelInfo, "cables-learned", slog.Int("cables", e.List.Cables()), slog.Int("devices", len(e.List.Devices())), slog.Any("left", append([]string{}, e.Left...)))
	case event.TakingOver:
		d.set(slog.LevelWarn, "takeover", slog.String("master", e.From.String()), slog.String("reason", e.Reason))
	case event.Guarding:
		d.set(slog.LevelError, "other-policy-guarded", slog.String("reason", e.Reason))
		d.Each = true
	case event.Deferred:
		d.set(slog.LevelWarn, "standby", slog.Any("master", e.Master), slog.String("reason", e.Reason))
	case event.Slept:
		d.set(slog.LevelWarn, "slept", slog.Duration("for", e.For))
	case event.Asked:
		d.set(slog.LevelDebug, "managers-asked", slog.Bool("alone", e.Alone))
	case event.Unexpected:
		d.set(slog.LevelError, "unexpected-master", slog.Any("port_guid", e.Port), slog.String("at", e.At))
	case event.RogueManager:
		d.set(slog.LevelError, "rogue-manager", slog.Any("port_guid", e.Port), slog.String("at", e.At), slog.String("reason", e.Reason))
		d.Each = true // there is one for each port and reason
	case event.NoMaster, event.SeveralMasters, event.OneMaster, event.MasterChanged, event.MasterFlapping, event.OtherPolicy, event.SamePolicy:
		d.charge(e)
	case event.Drifted:
		d.set(slog.LevelWarn, "foreign-change", port("port", e.Op.Port), slog.String("attribute", smp.AttributeName(e.Op.Attribute)), slog.String("modifier", fmt.Sprintf("0x%08x", e.Op.Modifier)))
	case event.Regrouped:
		d.set(slog.LevelDebug, "multicast", slog.Int("groups", e.Groups), slog.Int("writes", e.Writes), slog.Int("failures", e.Failures), slog.String("verdict", string(e.Proof.Verdict)))
		if e.Failures > 0 || !e.Proof.Verdict.Holds() {
			d.Level = slog.LevelWarn
		}
	case event.Completed:
		r := e.Result
		d.set(slog.LevelDebug, "verdict", slog.String("verdict", string(r.Proof.Verdict)), slog.Int("writes", r.Writes), slog.Int("failures", r.Failures),
			slog.Int("faults", r.Faults), slog.Int("inactive_links", r.Inactive), slog.Int("fences", len(r.Fences)))
	default:
		d.seen(e)
	}
	return d
}

// seen describes what was seen of devices.
func (d *EventDescription) seen(e event.Event) {
	switch e := e.(type) {
	case watch.LinksDown:
		d.set(slog.LevelWarn, "link-down", slog.Any("links", append([]watch.Link{}, e.Links...)), slog.Any("gone", append([]watch.Device{}, e.Gone...)))
		d.Each = true
	case watch.LinksUp:
		d.set(slog.LevelInfo, "link-up", slog.Any("links", append([]watch.Link{}, e.Links...)), slog.Any("new", append([]watch.Device{}, e.New...)))
		d.Each = true
	case watch.LinksAgain:
		d.set(slog.LevelInfo, "link-changed", slog.Any("links", append([]watch.Link{}, e.Links...)), slog.String("reason", e.Reason))
	case event.Rerouted:
		d.set(slog.LevelInfo, "rerouted", slog.Int("writes", e.Writes), slog.Int("failures", e.Failures))
		if e.Failures > 0 {
			d.Level = slog.LevelWarn
		}
	case event.Resweeping:
		d.set(slog.LevelDebug, "sweep", slog.String("reason", e.Reason), slog.Int("links", e.Links))
	case event.Stopped:
		d.set(slog.LevelWarn, "counter-stopped", port("port", e.Port), slog.Any("counters", e.Counters))
	case perfmgr.Dropped:
		d.set(slog.LevelWarn, "packets-dropped", port("port", e.Port), slog.String("counter", e.Counter.String()), slog.Uint64("packets", e.Packets), slog.Bool("stopped", e.Stuck))
	case event.Changed:
		d.set(slog.LevelInfo, "changed")
	case event.Flooded:
		kind := "too-many-traps"
		if e.Link {
			kind = "link-flapping"
		}
		d.set(slog.LevelWarn, kind, slog.String("at", e.Sender))
	case event.Tried: // a trap said the same
		d.set(slog.LevelDebug, "m-key-tried", slog.String("by", e.By), slog.String("at", e.At), slog.String("method", e.Method), slog.String("attribute", e.Attribute))
	case event.Disbelieved:
		d.set(slog.LevelWarn, "trap-disbelieved", slog.String("sender", e.Sender), slog.Int("trap", int(e.Number)), slog.Int("issuer_lid", int(e.Issuer)))
	case event.Trapped:
		d.set(trapLevel(e.Number), fmt.Sprintf("trap-%d", e.Number), slog.Any("trap", e.Report))
		if e.Report.At.Name != nil {
			d.Reporter = *e.Report.At.Name
		}
	case event.Halted:
		d.set(slog.LevelError, "may-not-write", slog.String("reason", e.Why), slog.Any("silent", append([]ib.PortGUID{}, e.Silent...)))
	case event.Resumed:
		d.set(slog.LevelWarn, "may-write")
	case event.Announced:
		d.set(slog.LevelInfo, "manager", slog.Any("port_guid", e.Port))
	case event.Released:
		d.set(slog.LevelWarn, "m-keys-released", slog.Any("port_guid", e.To), slog.Int("ports", e.Ports), slog.Int("failures", e.Failures))
	case event.LockedOut:
		d.set(slog.LevelWarn, "locked-out", slog.String("reason", e.Err.Error()))
	case mkey.GivenKeys:
		d.set(slog.LevelInfo, "m-keys", slog.Int("ports", e.Ports), slog.Int("failures", e.Failures))
		if e.Failures > 0 {
			d.Level = slog.LevelWarn
		}
	default:
		d.set(slog.LevelInfo, fmt.Sprintf("%T", e))
	}
}

func (d *EventDescription) set(l slog.Level, kind string, attrs ...slog.Attr) {
	d.Level, d.Kind, d.Attrs = l, kind, attrs
}

// trapLevel: wrong keys and a port in trouble concern the administrator; a changed link
// or description is reported by what the manager finds when it looks.
func trapLevel(n smp.TrapNumber) slog.Level {
	switch n {
	case smp.TrapBadMKey, smp.TrapBadPKey, smp.TrapBadQKey, smp.TrapSwitchBadPKey,
		smp.TrapLinkIntegrity, smp.TrapBufferOverrun, smp.TrapFlowControlWatchdog:
		return slog.LevelWarn
	case smp.TrapLinkStateChanged:
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

// port has the name of a port, its GUIDs and LID.
func port(key string, p *observed.Port) slog.Attr {
	if p == nil {
		return slog.Any(key, nil)
	}
	attrs := []any{slog.String("name", p.String()), slog.Any("node_guid", p.Node.GUID()), slog.Int("num", int(p.Num))}
	if a := p.Agent(); a.InfoRead {
		attrs = append(attrs, slog.Int("lid", int(a.Info.LID)))
	}
	return slog.Group(key, attrs...)
}

func fenced(f facts.Fence) []slog.Attr {
	return []slog.Attr{slog.String("name", f.Name), slog.Any("node_guid", f.At.Node), slog.Int("port", int(f.At.Port)), slog.String("reason", f.Reason)}
}
