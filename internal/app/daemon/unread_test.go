package daemon_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// deaf is a link on which the answers to one question never come.
type deaf struct {
	link.Link
	asked map[string]mad.AttributeID // every question that was asked
	lost  string                     // the question without an answer
	hit   bool                       // it was asked
}

func (d *deaf) Drive(ctx context.Context, e link.Engine, done func() bool) error {
	return d.Link.Drive(ctx, &deafEngine{e, d}, done)
}

type deafEngine struct {
	link.Engine
	link *deaf
}

// Receive sees the answers; each tells which question it is to, for hop pointer
// and path come back as they were sent.
func (e *deafEngine) Receive(now time.Duration, p *mad.SMP, from ib.LID) {
	var path mad.Path
	for _, num := range p.InitialPath[1 : p.HopCount+1] {
		path = append(path, ib.PortNum(num))
	}
	modifier := p.AttributeModifier
	if p.AttributeID == smp.AttrPortInfo {
		// Bit 31 says that extended speeds are known; who gets no answer asks the same without it.
		modifier &= 1<<31 - 1
	}
	question := fmt.Sprintf("%s modifier 0x%08x at %s", smp.AttributeName(p.AttributeID), modifier, path)
	if e.link.asked != nil {
		e.link.asked[question] = p.AttributeID
	}
	if question == e.link.lost {
		e.link.hit = true
		return
	}
	e.Engine.Receive(now, p, from)
}

type silent struct{}

func (silent) Event(event.Event)       {}
func (silent) Progress(string, uint64) {}

const unreadPolicy = `version: 1
default: limited
partitions:
  - {name: red, pkey: 0x0010, members: {full: [{port: 0x0000000000100009}, {port: 0x000000000010000b}]}}
`

// Of every read of a fabric the answer is lost in turn. A verdict of isolated
// turns to unknown, unless it does not rest on that answer; and no packet is
// said to end otherwise than it does, but as unknown.
func TestUnknownIsNeverAPass(t *testing.T) {
	topology, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	config := fabric.DefaultConfig()
	config.Jitter = 0 // every reading goes by the same ways
	fabric, err := fabric.New(topology, config)
	if err != nil {
		t.Fatal(err)
	}
	inner, err := inproc.New(fabric, 0x100000, 1, false)
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	p, err := policyfile.ReadYAML([]byte(unreadPolicy), "unread.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r := daemon.NewRunner(inner, engine.Config{Routing: routing.UpDown}, server.Config{}, p, silent{})
	if err := r.Run(context.Background(), r.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	link := &deaf{Link: inner, asked: map[string]mad.AttributeID{}}
	whole := readAll(t, link)
	allowed := isolation.AsTables(whole)
	if p := isolation.Prove(whole, allowed); p.Verdict != isolation.Isolated {
		t.Fatalf("%s before anything was lost: %q", p.Verdict, p.Reasons)
	}
	before := fates(whole)
	questions := make([]string, 0, len(link.asked))
	for q := range link.asked {
		questions = append(questions, q)
	}
	slices.Sort(questions)
	byAttribute := link.asked
	link.asked = nil
	proofs, traces := map[mad.AttributeID]int{}, map[mad.AttributeID]int{}
	for _, q := range questions {
		link.lost, link.hit = q, false
		f := readAll(t, link)
		if !link.hit {
			t.Errorf("%s was not asked again", q)
		}
		id := byAttribute[q]
		verdict := isolation.Prove(f, allowed).Verdict
		after := fates(f)
		for pair, is := range after {
			if was := before[pair]; is != was && is != reach.Unknown && is != reach.DeadEnd {
				t.Errorf("%s lost: %s is %s, was %s", q, pair, is, was)
			} else if is != was {
				traces[id]++
			}
		}
		if verdict == isolation.Unknown {
			proofs[id]++
			continue
		}
		if rests(whole, q, id) && !(id == smp.AttrNodeInfo && f.Count() == whole.Count()) || verdict != isolation.Isolated {
			t.Errorf("%s lost, and the verdict is %s", q, verdict)
		}
	}
	t.Logf("%d questions; verdicts that turned: %v; packets: %v", len(questions), proofs, traces)
	for _, id := range []mad.AttributeID{smp.AttrNodeInfo, smp.AttrPortInfo, smp.AttrPKeyTable, smp.AttrSwitchInfo} {
		if proofs[id] == 0 {
			t.Errorf("no verdict turned for want of %s", smp.AttributeName(id))
		}
	}
	for _, id := range []mad.AttributeID{smp.AttrLinearForwardingTable, smp.AttrSLToVLMappingTable} {
		if traces[id] == 0 {
			t.Errorf("no packet turned for want of %s", smp.AttributeName(id))
		}
	}
}

// rests reports whether a proof of the P_Key tables rests on an answer: on all
// but texts, ways, virtual lanes, and the settings of ports between switches. (A cable
// between switches can be found from either end: the caller looks whether it
// was.)
func rests(f *observed.Fabric, question string, id mad.AttributeID) bool {
	switch id {
	case smp.AttrNodeDescription, smp.AttrLinearForwardingTable, smp.AttrRandomForwardingTable,
		smp.AttrSLToVLMappingTable, smp.AttrVLArbitrationTable:
		return false
	case smp.AttrPortInfo:
		for _, n := range f.Switches() {
			for i := 1; i < len(n.Ports); i++ {
				p := &n.Ports[i]
				between := p.Peer != nil && p.Peer.Node.Switch != nil
				if between && strings.HasSuffix(question, fmt.Sprintf("modifier 0x%08x at %s", i, p.Path)) {
					return false
				}
			}
		}
	}
	return true
}

func readAll(t *testing.T, link link.Link) *observed.Fabric {
	t.Helper()
	s, _, err := daemon.Snapshot(context.Background(), link, "sim", sweep.Options{Forwarding: true, QoS: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.Fabric
}

// fates is what becomes of a packet from every end port to every other with
// each of the sender's keys.
func fates(f *observed.Fabric) map[string]reach.Disposition {
	out := map[string]reach.Disposition{}
	ports := f.EndPorts()
	for _, a := range ports {
		for _, b := range ports {
			for _, k := range a.PKeys {
				if a != b && k.IsValid() {
					d := reach.Follow(a, b, reach.Packet{PKey: k, SL: 1}).Disposition
					out[fmt.Sprintf("%s to %s over %s", a.GUID, b.GUID, k)] = d
				}
			}
		}
	}
	return out
}
