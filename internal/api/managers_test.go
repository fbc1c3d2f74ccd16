package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/service"
)

// otherManagers are the subnet managers of a stand: the one that answers, a standby that
// shares the secret, and a rogue that says that it is master.
type otherManagers struct {
	list   []observed.SubnetManager
	handed []ib.PortGUID
	fails  string
}

func newOthers(snap *snapshot.Snapshot) *otherManagers {
	o := &otherManagers{}
	for i, p := range snap.Fabric.EndPorts()[:3] {
		m := observed.SubnetManager{Port: p.GUID, Node: p.Node.GUID(), Name: p.Node.Name(), Num: p.Num, LID: p.Info.LID, IsSM: true}
		switch i {
		case 0:
			m.Trust = observed.TrustSelf
			m.Hear(&smp.SMInfo{GUID: p.GUID, Priority: 9, SMState: smp.SMMaster})
		case 1:
			m.Trust = observed.TrustShared
			m.Hear(&smp.SMInfo{GUID: p.GUID, SMKey: 0xDEAD_BEEF, SMState: smp.SMStandby})
		case 2:
			m.Trust, m.Why = observed.TrustNone, "nobody named it"
			m.Hear(&smp.SMInfo{GUID: p.GUID, SMKey: 0xDEAD_BEEF, Priority: 15, SMState: smp.SMMaster})
		}
		o.list = append(o.list, m)
	}
	return o
}

func (o *otherManagers) Managers(context.Context) ([]observed.SubnetManager, error) {
	return o.list, nil
}
func (o *otherManagers) ProvedRevision() (uint64, bool) { return 7, true }

func (o *otherManagers) Standby(_ context.Context, to ib.PortGUID) (*observed.SubnetManager, error) {
	if to != 0 && to != o.list[1].Port {
		return nil, &service.NotHandedOver{Reason: "not trusted"}
	}
	return &o.list[1], nil
}

func (o *otherManagers) HandOver(_ context.Context, to ib.PortGUID) (bool, error) {
	o.handed = append(o.handed, to)
	if o.fails != "" {
		return false, &service.NotHandedOver{Reason: o.fails}
	}
	return true, nil
}

// logged are the entries of the audit log about handovers, as DECISION TENANT REASON.
func (s *stand) logged() (out []string) {
	s.Helper()
	for _, e := range s.want(200, call{path: "/audit-log?limit=1000", method: "GET"})["items"].([]any) {
		if e := e.(map[string]any); e["action"] == handOverAction {
			out = append(out, fmt.Sprint(e["decision"], " ", e["tenant"], " ", e["reason"]))
		}
	}
	return out
}

// The list has every manager, the ones that do not count too, and no key of any.
func TestManagersAreListed(t *testing.T) {
	s := newStand(t)
	w := s.do(call{method: "GET", path: "/managers"})
	if text := strings.ToLower(w.Body.String()); strings.Contains(text, "deadbeef") || strings.Contains(text, fmt.Sprint(0xDEAD_BEEF)) {
		t.Errorf("a key is told: %s", text)
	}
	items := s.want(200, call{method: "GET", path: "/managers"})["items"].([]any)
	var got []string
	endPorts := 0.0
	for _, x := range items {
		m := x.(map[string]any)
		got = append(got, fmt.Sprint(m["trust"], " ", m["state"], " ", m["priority"], " ", m["self"], " ", m["shows_sm_key"], " ", m["proved_revision"], " ", m["store"], " ", m["epoch"]))
		endPorts += m["end_ports"].(float64)
	}
	want := []string{
		"self master 9 true false 7 bolt:test 1",
		"shared standby 0 false true <nil> <nil> <nil>",
		"none master 15 false true <nil> <nil> <nil>",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if endPorts < float64(len(s.hosts)) {
		t.Errorf("%v end ports name a master, want those of %d hosts at least", endPorts, len(s.hosts))
	}
}

// A handover is for the provider alone. Whoever else asks is refused and recorded, and
// nothing is handed over, whatever he sends.
func TestHandoverIsForTheProvider(t *testing.T) {
	s := newStand(t)
	s.tenants()
	s.tokens["watcher"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "provider", "read_only": true}})["secret"].(string)
	s.tokens["bound"] = s.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": "provider", "keys": js{"first": "0x0100", "last": "0x0101"}}})["secret"].(string)
	standby := s.others.list[1]
	for _, as := range []string{"red", "blue", "reader", "watcher", "bound"} {
		for _, path := range []string{"/managers/handover", "/managers/handover?dry_run=false", "/managers/handover?dry_run=true"} {
			for _, to := range []string{"", standby.Port.String(), s.others.list[2].Port.String()} {
				if w := s.do(call{as: as, method: "POST", path: path, body: js{"to": to}}); w.Code != 403 || strings.Contains(w.Body.String(), standby.Name) {
					t.Errorf("%s, %s to %q: %d %s", as, path, to, w.Code, w.Body)
				}
			}
		}
	}
	for _, as := range []string{"nobody", "uid:65534"} {
		s.want(401, call{as: as, method: "POST", path: "/managers/handover", body: js{}})
	}
	if len(s.others.handed) > 0 {
		t.Fatalf("handed over to %v", s.others.handed)
	}
	log := s.logged()
	if len(log) != 4 { // the front refuses the bound one before any operation
		t.Errorf("%d entries in the audit log, want one for each token that gets so far: %q", len(log), log)
	}
	s.reopened()
	if log = s.logged(); len(log) != 2*4 {
		t.Errorf("%d entries in the audit log, want for each token the first try and the others: %q", len(log), log)
	}
	for _, e := range log {
		if !strings.HasPrefix(e, "refused ") {
			t.Errorf("entry %q", e)
		}
	}
}

// What the provider asks for happens, is recorded before it does, and says what happened;
// what cannot be is refused with the reason.
func TestHandover(t *testing.T) {
	s := newStand(t)
	standby, rogue := s.others.list[1], s.others.list[2]
	for _, to := range []string{"", standby.Port.String(), strings.ToUpper(standby.Node.String()[2:]), standby.Name} {
		want := 200
		if to != "" && !strings.HasPrefix(to, "0x") && to != standby.Name {
			want = 422 // no form of a GUID
		}
		out := s.want(want, call{method: "POST", path: "/managers/handover", body: js{"to": to}, header: map[string]string{"Why": "upgrade"}})
		if want == 200 && (out["master"] != true || !strings.Contains(fmt.Sprint(out["text"]), standby.Name+" (port "+standby.Port.String()+") has taken the subnet")) {
			t.Errorf("to %q: %v", to, out)
		}
	}
	if n := len(s.others.handed); n != 3 {
		t.Errorf("%d handovers, want 3", n)
	}
	s.want(200, call{method: "POST", path: "/managers/handover?dry_run=true", body: js{}})
	s.want(409, call{method: "POST", path: "/managers/handover", body: js{"to": rogue.Port.String()}})
	s.want(422, call{method: "POST", path: "/managers/handover", body: js{"to": s.others.list[0].Port.String()}}) // itself
	s.want(422, call{method: "POST", path: "/managers/handover", body: js{"to": "nobody"}})
	s.want(422, call{method: "POST", path: "/managers/handover", body: js{"to": standby.Name, "by": "force"}})
	s.others.list[2].Name = standby.Name // as a rogue may call itself
	s.want(422, call{method: "POST", path: "/managers/handover", body: js{"to": standby.Name}})
	s.others.fails = "it does not take mastership: this manager is master still"
	out := s.want(409, call{method: "POST", path: "/managers/handover", body: js{}})
	if !strings.Contains(fmt.Sprint(out["detail"]), "master still") {
		t.Errorf("%v", out)
	}
	log := s.logged()
	accepted := 0
	for _, e := range log {
		if strings.HasPrefix(e, "accepted provider to "+standby.Port.String()) {
			accepted++
		}
	}
	if accepted != 4 || !strings.Contains(strings.Join(log, "\n"), "refused provider it does not take mastership") || !strings.Contains(log[0], ": upgrade") && !strings.Contains(log[len(log)-1], ": upgrade") {
		t.Errorf("the audit log has %q", log)
	}
}

// Where the try cannot be recorded, nothing is handed over.
func TestHandoverThatCannotBeRecorded(t *testing.T) {
	s := newStand(t)
	s.store.Close()
	if w := s.do(call{method: "POST", path: "/managers/handover", body: js{}}); w.Code < 500 || len(s.others.handed) > 0 {
		t.Errorf("%d %s; handed to %v", w.Code, w.Body, s.others.handed)
	}
}
