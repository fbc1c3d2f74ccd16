package mastership

import (
	"errors"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// TestWhoMayBeHandedTheSubnet changes one thing at a time of a handover that an administrator wants, and
// compares why it is refused, in full.
func TestWhoMayBeHandedTheSubnet(t *testing.T) {
	remote := func(guid ib.PortGUID, priority uint8, state smp.SMState) Remote {
		return Remote{Info: smp.SMInfo{GUID: guid, SMKey: key, Priority: priority, SMState: state, ActCount: 5}, Address: Address{LID: ib.LID(guid), Port: guid}}
	}
	type scene struct {
		state  smp.SMState
		config ElectionConfig
		to     Remote
		others []Remote
		before func(*Election)
	}
	for _, x := range []struct {
		name   string
		change func(*scene)
		want   string
	}{
		{"a standby", func(*scene) {}, ""},
		{"by a standby", func(s *scene) { s.state = smp.SMStandby }, "this manager is standby, not master"},
		{"beside another master", func(s *scene) {
			s.before = func(e *Election) { e.watch.on, e.watch.remote = true, remote(90, 0, smp.SMMaster) }
		}, "manager 0x000000000000005a is master too"},
		{"while another is offered it", func(s *scene) {
			s.before = func(e *Election) { e.offer = offer{open: true, to: remote(61, 0, smp.SMStandby)} }
		}, "manager 0x000000000000003d is being offered mastership"},
		{"to who is not trusted", func(s *scene) { s.config.Trusted = []ib.PortGUID{61} }, "manager 0x000000000000003c is not trusted"},
		{"to who is trusted", func(s *scene) { s.config.Trusted = []ib.PortGUID{60} }, ""},
		{"to a master", func(s *scene) { s.to.Info.SMState = smp.SMMaster }, "manager 0x000000000000003c is master, not standby"},
		{"to one that discovers", func(s *scene) { s.to.Info.SMState = smp.SMDiscovering }, "manager 0x000000000000003c is discovering, not standby"},
		{"to one that is frozen", func(s *scene) { s.before = func(e *Election) { e.frozen = s.to.Info } }, "manager 0x000000000000003c answers but does nothing"},
		{"to one that was frozen", func(s *scene) {
			s.before = func(e *Election) { e.frozen = s.to.Info; e.frozen.ActCount-- }
		}, ""},
		{"to one beside a frozen one", func(s *scene) { s.before = func(e *Election) { e.frozen = remote(61, 0, smp.SMStandby).Info } }, ""},
		{"to the lower of two", func(s *scene) { s.others = append(s.others, remote(61, 5, smp.SMStandby)) },
			"manager 0x000000000000003d outranks manager 0x000000000000003c, and would be handed the subnet next"},
		{"to the higher of two", func(s *scene) { s.others = append(s.others, remote(61, 3, smp.SMStandby)) }, ""},
		{"to priority 0 with a higher GUID", func(s *scene) { s.to.Info.Priority = 0; s.others = []Remote{s.to} },
			"manager 0x000000000000003c has priority 0 and a higher GUID than this one, and would hand it back at once: give it a higher priority"},
		{"to priority 0 with a lower GUID", func(s *scene) { s.to = remote(40, 0, smp.SMStandby); s.others = []Remote{s.to} }, ""},
	} {
		s := scene{state: smp.SMMaster, config: ElectionConfig{Priority: 9, SMKey: key}, to: remote(60, 4, smp.SMStandby)}
		s.others = []Remote{s.to}
		x.change(&s)
		e := engine(t, s.state, s.config)
		if s.before != nil {
			s.before(e)
		}
		effects, err := e.HandOver(0, s.to, s.others)
		want := ""
		if x.want != "" {
			want = ErrNoHandover.Error() + ": " + x.want
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != want || err != nil && !errors.Is(err, ErrNoHandover) {
			t.Errorf("%s: %q, want %q", x.name, got, want)
		}
		if sent := len(effects.Send) > 0; sent != (err == nil) {
			t.Errorf("%s: something is sent %v, with error %v", x.name, sent, err)
		}
		if err == nil && (!e.offer.open || !e.offer.planned || e.offer.to.Info.GUID != s.to.Info.GUID || !e.down.on || e.down.to != s.to.Info.GUID) {
			t.Errorf("%s: offer %+v, down %+v", x.name, e.offer, e.down)
		}
	}
}
