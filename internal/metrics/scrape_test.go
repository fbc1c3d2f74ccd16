package metrics

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/pma"
)

// same compares a text with that of a file in testdata; IBWARDEN_UPDATE=1 writes it.
func same(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	have, due := strings.Split(got, "\n"), strings.Split(string(want), "\n")
	for _, l := range have {
		if !slices.Contains(due, l) {
			t.Errorf("%s: written and not expected: %s", file, l)
		}
	}
	for _, l := range due {
		if !slices.Contains(have, l) {
			t.Errorf("%s: expected and not written: %s", file, l)
		}
	}
	if got != string(want) && !t.Failed() {
		t.Errorf("%s: the order is another, or a line is there twice:\n%s", file, got)
	}
}

// samples are those of collectors, sorted, without their descriptions.
func samples(t *testing.T, list ...prometheus.Collector) string {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	for _, c := range list {
		r.MustRegister(c)
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&text, f); err != nil {
			t.Fatal(err)
		}
	}
	return undescribed(text.String())
}

func undescribed(text string) string {
	var out strings.Builder
	for l := range strings.Lines(text) {
		if !strings.HasPrefix(l, "# ") {
			out.WriteString(l)
		}
	}
	return out.String()
}

// told is an observer that was told of every event that it counts, each kind another
// number of times.
func told() *Observer {
	o := NewObserver()
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for n, e := range []event.Event{
		event.RogueManager{}, event.Refused{Err: errors.New("it does not fit")}, event.Deferred{},
		event.Trapped{Number: smp.TrapBadMKey}, event.Trapped{Number: smp.TrapBadPKey}, event.Trapped{Number: smp.TrapSwitchBadPKey}, event.Trapped{Number: smp.TrapBadQKey},
		event.Drifted{}, event.Trapped{Number: smp.TrapLinkStateChanged},
	} {
		for range n + 1 {
			o.Event(at(0), "an-id", e)
		}
	}
	o.Event(at(0), "another", event.Deferred{})
	o.Event(at(100), "link", watch.LinksDown{})
	o.Event(at(200), "link", watch.LinksUp{})
	o.Event(at(300), "policy", event.PolicyGiven{})
	o.Event(at(310), "verdict", event.Completed{Result: &event.Result{
		Counts: observed.Counts{Nodes: 106, Switches: 31, CAs: 41, Routers: 34, Links: 107},
		Writes: 51, Failures: 52, Faults: 53, Inactive: 54, Fences: make([]facts.Fence, 55),
		Proof: &isolation.Proof{
			Verdict: isolation.Unguarded,
			Counts: isolation.Counts{
				Pairs:      isolation.PairCounts{Isolated: 61, ByEndPorts: 62, Unknown: 63, Violated: 64},
				Violations: 65, Exposed: 66, Missing: 67, Foreign: 68, Unenforced: 69, Raw: 70, Unknown: 71, Changeable: 72,
				Keys: isolation.KeyPorts{Missing: 73, Unexpected: 74, Unknown: 75},
			},
			Pairs: []isolation.PairVerdict{
				{A: "a", B: "b", Verdict: isolation.Isolated}, {A: "a", B: "c", Verdict: isolation.Violated, Joined: true},
			},
		},
		Partitions: []observed.Partition{
			{Name: "a", Base: 1, Full: []ib.PortGUID{1, 2}, Limited: []ib.PortGUID{3}},
			{Name: "a", Base: 1}, // not twice, whoever says so
		},
	}})
	return o
}

// everything is a state in which every number is another one.
func everything() *State {
	s := &State{
		Made: time.Unix(990, 0), Version: "v1", GoVersion: "go1",
		Manager:        event.Status{State: smp.SMStandby, Others: 2, Rogues: 3, Sweeps: event.Sweeps{Full: 4, Links: 5, Light: 6}, Guards: true},
		Charge:         event.MasterStatus{Masters: 7, Changes: 8, Flapping: true, OtherPolicies: 9},
		SMPs:           []Labelled{{[]string{"Get", "NodeInfo"}, 10}},
		Requests:       []Labelled{{[]string{"Get", "NodeInfo", "answered"}, 11}},
		Window:         transact.Counts{Sent: 12, Retried: 13, Extra: 100, Answered: 14, Failed: 15, Unmatched: 16},
		Phases:         []sweep.Phase{{Name: "discovery", Seconds: 1.5, FabricSeconds: 2.5, Sent: 17, Answered: 18, Repeated: 19, Lost: 20}},
		Administration: server.Counts{Refused: 21, Busy: 22, Dropped: 23, Malformed: 24, Reports: 25, Unreported: 26},
		Answers:        []Labelled{{[]string{"Get", "PathRecord", "ok"}, 27}},
		Alarms:         map[string]uint64{"delivered": 28},
		Alerts:         []Labelled{{[]string{"alertmanager.example", "sent"}, 87}},
		Reading:        true,
		Polls:          perfmgr.Counts{Sent: 29, Answered: 80, Unanswered: 81, Refused: 82, Malformed: 83, Stray: 84, LastRound: 85 * time.Second},
		Contested:      86,
	}
	told().Copy(s)
	s.CopyManagers([]observed.SubnetManager{
		{Port: 0x31, Name: "stranger", Trust: observed.TrustNone, Answered: true, State: smp.SMMaster, Priority: 15},
		{Port: 0x32, Name: "self\n", Trust: observed.TrustSelf, Answered: true, State: smp.SMStandby, Priority: 3},
		{Port: 0x33, Name: "silent", Trust: observed.TrustListed, Answered: true, Missed: 1, State: smp.SMStandby, Priority: 4},
		{Port: 0x34, Name: "mute", Trust: observed.TrustShared, State: smp.SMNotActive, Priority: 5},
		{Port: 0x32, Name: "another with that GUID", Trust: observed.TrustNone},
		{Port: 0x35, Name: "quiet", Trust: observed.TrustShared, Answered: true, State: smp.SMNotActive},
		{Port: 0x36, Name: "searching", Trust: observed.TrustShared, Answered: true, State: smp.SMDiscovering},
	})
	return s
}

// devices has one device of each kind, and each way in which a request for counters ends.
func devices() []Device {
	sw, ca, rt := &Identity{GUID: "0x20", Kind: "SW"}, &Identity{GUID: "0x11", Kind: "CA"}, &Identity{GUID: "0x30", Kind: "RT"}
	return []Device{
		{Identity: sw, Silent: true, Ports: []Port{{Read: true, Fault: perfmgr.NoAnswer}, {Read: true, Fault: perfmgr.NoKey}, {Fault: perfmgr.Malformed}}},
		{Identity: sw, Silent: true, Refused: true, Ports: []Port{{Read: true, Fault: perfmgr.Refused}, {Read: true, Fault: perfmgr.NoKey}, {Read: true, Fault: perfmgr.NoKey}}},
		{Identity: sw, Silent: true},
		{Identity: sw},
		{Identity: rt, Silent: true, Refused: true, Ports: []Port{{Read: true, Fault: perfmgr.Answered}}},
		{Identity: ca, Silent: true},
		{Identity: ca, Refused: true},
		{Identity: ca, Refused: true},
	}
}

// TestScrape: every sample of a state that has everything, with its value.
func TestScrape(t *testing.T) {
	s := everything()
	s.Devices = devices()
	same(t, "scrape.txt", samples(t, collector(s)))
	s.Hosts = true
	s.Manager.Guards, s.Manager.Halted, s.Charge.Flapping, s.Manager.State = false, true, false, smp.SMMaster
	same(t, "scrape-hosts.txt", samples(t, collector(s)))
	without := samples(t, collector(&State{Made: time.Unix(1000, 0), Devices: devices()}))
	same(t, "scrape-nothing.txt", without)
	if n := strings.Count(without, "ibwarden_perf") + strings.Count(without, "infiniband_") + strings.Count(without, "ibwarden_fabric_masters"); n != 0 {
		t.Errorf("%d samples of counters that nobody reads and of a subnet that was not read", n)
	}
}

// TestManagersMax: strangers never take the place of a manager that counts, however many
// there are and whoever is first.
func TestManagersMax(t *testing.T) {
	var known []observed.SubnetManager
	for n := range 2 * managersMax {
		known = append(known, observed.SubnetManager{Port: ib.PortGUID(n + 1), Trust: observed.TrustNone})
	}
	known = append(known, observed.SubnetManager{Port: 0x1000, Trust: observed.TrustShared})
	var s State
	s.CopyManagers(known)
	if len(s.Managers) != managersMax || s.Managers[0].Trust != "shared" || s.Managers[1].Port != known[0].Port.String() {
		t.Errorf("%d managers, the first %+v", len(s.Managers), s.Managers[:2])
	}
}

// TestStore: what the store does is counted, each kind of failure for itself.
func TestStore(t *testing.T) {
	up, leads, missing := true, false, 3
	s := &Store{Up: func() bool { return up }, Leads: func() bool { return leads }, Missing: func() int { return missing }}
	same(t, "store-nothing.txt", samples(t, s))
	for n, kind := range append(StoreFailures, "") {
		for range n + 1 {
			s.Committed(time.Duration(n)*time.Second, kind)
		}
	}
	s.SetRevision(50)
	s.SetEpoch(1)
	up, leads, missing = false, true, 0
	same(t, "store.txt", samples(t, s))
}

// fabric is a switch with a host at port 1, a router at port 2, a link that is down at 3,
// and one of which nothing was read at 4.
func fabric() *observed.Fabric {
	f := observed.NewFabric()
	sw := f.AddNode(smp.NodeInfo{NodeType: ib.NodeSwitch, NodeGUID: 0x20, PortGUID: 0x21, NumPorts: 4})
	host := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NodeGUID: 0x10, NumPorts: 4})
	router := f.AddNode(smp.NodeInfo{NodeType: ib.NodeRouter, NodeGUID: 0x30, NumPorts: 1})
	up := func(p *observed.Port, lid ib.LID) {
		p.Reached, p.InfoRead = true, true
		p.Info = smp.PortInfo{
			LID: lid, PortState: smp.PortActive, PortPhysicalState: smp.PhysLinkUp, LinkWidthActive: smp.LinkWidth4X, LinkSpeedExtActive: smp.LinkSpeedEDR,
			MKeyViolations: uint16(lid), PKeyViolations: uint16(lid + 1), QKeyViolations: uint16(lid + 2),
		}
	}
	up(&sw.Ports[0], 100)
	up(&sw.Ports[1], 0)
	up(&sw.Ports[2], 0)
	up(&host.Ports[1], 7)
	host.Ports[1].GUID = 0x11
	host.Ports[2].GUID = 0x12                              // never reached
	host.Ports[3].Reached = true                           // and one without a GUID
	host.Ports[4].GUID, host.Ports[4].Reached = 0x14, true // its PortInfo was not read
	up(&router.Ports[1], 9)
	router.Ports[1].GUID = 0x31
	sw.Ports[3].InfoRead, sw.Ports[3].Info = true, smp.PortInfo{PortState: smp.PortDown, PortPhysicalState: smp.PhysPolling, LinkWidthActive: smp.LinkWidth4X, LinkSpeedActive: smp.LinkSpeedQDR}
	sw.Ports[1].Peer, host.Ports[1].Peer = &host.Ports[1], &sw.Ports[1]
	sw.Ports[2].Peer, router.Ports[1].Peer = &router.Ports[1], &sw.Ports[2]
	return f
}

// TestFabric: the samples of a subnet and of the counters that were read of it, from the
// answers of devices to what is written: a device that does not answer, one that refuses, and
// a counter that has reached its end.
func TestFabric(t *testing.T) {
	f := fabric()
	l := perfmgr.DefaultLimits()
	l.Rate, l.Share, l.Hosts, l.Details, l.Tries = 0, 0, true, true, 1
	p := perfmgr.New(perfmgr.Config{Limits: l})
	p.SetSubnet(observed.Subnet{Fabric: f, Epoch: 1, Partitions: []observed.Partition{{Base: 0x7FFF}}})
	agents := map[ib.LID]*pma.Agent{100: pma.New(4, true), 7: pma.New(1, false)}
	for c := perfmgr.Counter(0); c < perfmgr.Counters; c++ {
		attribute := "PortCountersExtended"
		if c >= perfmgr.PortLocalPhysicalErrors {
			attribute = "PortRcvErrorDetails"
		}
		if err := agents[100].Port(1).Set(attribute, c.String(), 1000+uint64(c)); err != nil {
			t.Fatal(err)
		}
	}
	if err := agents[100].Port(2).Set("PortRcvErrorDetails", perfmgr.PortLoopingErrors.String(), 0xFFFF); err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	for range 20 {
		p.Expire(now)
		var raw [mad.Size]byte
		for {
			to, ok := p.Next(now, &raw)
			if !ok {
				break
			}
			var m pm.MAD
			if err := m.UnmarshalBinary(raw[:]); err != nil {
				t.Fatal(err)
			}
			if agent := agents[to.LID]; agent == nil || !agent.Handle(&m) {
				continue
			}
			if to.LID == 7 && m.AttributeID != mad.AttrClassPortInfo {
				m.Status = mad.StatusInvalidField
			}
			b, err := m.AppendBinary(nil)
			if err != nil {
				t.Fatal(err)
			}
			p.Receive(now, (*[mad.Size]byte)(b), mad.Address{LID: to.LID, QP: ib.QP1})
		}
		now += time.Second / 10
	}
	s := &State{Reading: true, Hosts: true}
	CopyFabric(s, f, p.Readings(now))
	var out bytes.Buffer
	if err := WriteFabric(&out, s); err != nil {
		t.Fatal(err)
	}
	same(t, "fabric.txt", undescribed(out.String()))

	// Without readings, and with a node that two claim to be.
	unread := &State{Hosts: true}
	f.Nodes[2].Contested = true
	CopyFabric(unread, f, nil)
	out.Reset()
	if err := WriteFabric(&out, unread); err != nil {
		t.Fatal(err)
	}
	same(t, "fabric-unread.txt", undescribed(out.String()))

	var nothing State
	CopyFabric(&nothing, nil, nil)
	if err := WriteFabric(&out, nil); err != nil || nothing.Devices != nil {
		t.Errorf("no subnet: %v, %+v", err, nothing)
	}
}

// TestRates: the rates of a link are those of its lanes.
func TestRates(t *testing.T) {
	widths := map[smp.LinkWidth]float64{smp.LinkWidth1X: 1, smp.LinkWidth2X: 2, smp.LinkWidth4X: 4, smp.LinkWidth8X: 8, smp.LinkWidth12X: 12, 0: 0}
	for width, lanes := range widths {
		for _, x := range []struct {
			info      smp.PortInfo
			rate, raw float64 // of a lane in Gbit/s
		}{
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedSDR}, 2, 2.5},
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedDDR}, 4, 5},
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedQDR}, 8, 10},
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedQDR, LinkSpeedExtActive: smp.LinkSpeedFDR}, 13.64, 14.0625},
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedQDR, LinkSpeedExtActive: smp.LinkSpeedEDR}, 25, 25.78125},
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedQDR, LinkSpeedExtActive: smp.LinkSpeedHDR}, 50, 50},
			{smp.PortInfo{LinkSpeedActive: smp.LinkSpeedQDR, LinkSpeedExtActive: smp.LinkSpeedNDR}, 100, 100},
			{smp.PortInfo{}, 0, 0},
		} {
			x.info.LinkWidthActive = width
			if rate, raw := ratesOf(&x.info); rate != x.rate*lanes*bytesPerGigabit || raw != x.raw*lanes*bytesPerGigabit {
				t.Errorf("%v: %v, %v bytes/s; want %v, %v Gbit/s of each of %v lanes", x.info, rate, raw, x.rate, x.raw, lanes)
			}
		}
	}
}

// TestNumbers: a value is written as the whole number that it is, if it is one that float64
// has exactly, and else as Prometheus reads it.
func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 1 << 53: "9007199254740992", 1.5: "1.5", -1: "-1", 1757812500: "1757812500", 1e300: "1e+300", 1 << 54: "1.8014398509481984e+16",
	} {
		x := text{}
		x.end(v)
		if got := string(x.bytes); got != "} "+want+"\n" {
			t.Errorf("%v is written as %q", v, got)
		}
	}
}

// pieces keeps the length of each write.
type pieces struct{ lengths []int }

func (p *pieces) Write(b []byte) (int, error) {
	p.lengths = append(p.lengths, len(b))
	return len(b), nil
}

// TestTextInPieces: a large fabric is written in pieces, each a little over textChunk, be it the
// samples of ports or those of devices.
func TestTextInPieces(t *testing.T) {
	for name, d := range map[string]Device{
		"ports":   {Identity: &Identity{Kind: "RT"}, Ports: []Port{{Num: "1", State: 4}}},
		"devices": {Identity: &Identity{Kind: "SW"}},
	} {
		s := &State{}
		for range 4000 {
			s.Devices = append(s.Devices, d)
		}
		var p pieces
		if err := WriteFabric(&p, s); err != nil {
			t.Fatal(err)
		}
		for i, n := range p.lengths {
			if n > textChunk+textRoom || n < textChunk && i < len(p.lengths)-1 {
				t.Errorf("%s: piece %d has %d bytes", name, i, n)
			}
		}
		if len(p.lengths) < 3 {
			t.Errorf("%s: %d pieces", name, len(p.lengths))
		}
	}
}
