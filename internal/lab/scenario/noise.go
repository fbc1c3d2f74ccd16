package scenario

import (
	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// compileNoise reads how a link misbehaves for what leaves by a port of it.
func compileNoise(a *args) (action, error) {
	p, err := a.External()
	if err != nil {
		return nil, err
	}
	var fault fabric.LinkFault
	if a.Keyword("none") {
		return func(w *world) error { return w.Fabric.SetLinkFault(p.Node.GUID, p.Num, fault) }, nil
	}
	for first := true; first || a.More(); first = false {
		s, err := a.Setting("none, flips=SHARE, loss=SHARE or delay=TIME", false)
		if err != nil {
			return nil, err
		}
		switch s.Name {
		case "flips":
			fault.Flips, err = a.ToShare(s.ScriptWord, s.Value, s.Name)
		case "loss":
			fault.Loss, err = a.ToShare(s.ScriptWord, s.Value, s.Name)
		case "delay":
			fault.Delay, err = a.ToDuration(s.ScriptWord, s.Value, s.Name)
		default:
			err = a.Fault(s.ScriptWord, "%q: want none, flips=SHARE, loss=SHARE or delay=TIME", s.Name)
		}
		if err != nil {
			return nil, err
		}
	}
	if fault == (fabric.LinkFault{}) {
		return nil, a.Fault(testbed.ScriptWord{}, "want a share or time above 0, or none")
	}
	return func(w *world) error { return w.Fabric.SetLinkFault(p.Node.GUID, p.Num, fault) }, nil
}

func compileReckless(a *args) (action, error) {
	state, err := a.Pick("on", "off")
	if err != nil {
		return nil, err
	}
	p, err := a.External()
	return func(w *world) error { return w.Fabric.SetReckless(p.Node.GUID, p.Num, state == "on") }, err
}
