package daemon_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/audit"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/link/inproc"
	"github.com/ibwarden/ibwarden/internal/manager/desired/routing"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// managed is a random fabric with random partitions, and then some faults, as it was read.
func managed(t *testing.T, seed uint64) *snapshot.Snapshot {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 31))
	list, err := topology.Generate(fmt.Sprintf("random,seed=%d,switches=%d,hosts=%d", seed, 2+r.IntN(4), 4+r.IntN(8)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := fabric.New(list, fabric.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	node, num, err := list.Attach("")
	if err != nil {
		t.Fatal(err)
	}
	link, err := inproc.New(f, node.GUID, num, false)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	all := sweep.Options{Forwarding: true, QoS: true, Audit: true, Multicast: true}
	var text strings.Builder
	text.WriteString("version: 1\ndefault: limited\npartitions:\n")
	for i := range 1 + r.IntN(4) {
		fmt.Fprintf(&text, "  - {name: p%d, pkey: 0x%04x, members: {full: [", i, 1+i*0x111)
		for _, p := range snap(t, link, sweep.Options{}).Fabric.EndPorts() {
			if p.Node.Switch == nil && r.IntN(3) == 0 {
				fmt.Fprintf(&text, "{port: %s},", p.GUID)
			}
		}
		text.WriteString("]}}\n")
	}
	p, err := policyfile.ReadYAML([]byte(text.String()), "random.yaml")
	if err != nil {
		t.Fatal(err)
	}
	run := daemon.NewRunner(link, engine.Config{Routing: routing.UpDown}, server.Config{}, p, silent{})
	if err := run.Run(context.Background(), run.Engine().Settled); err != nil {
		t.Fatal(err)
	}
	s := snap(t, link, all)
	s.Faults = append(s.Faults, snapshot.Fault{Where: s.Fabric.Nodes[0].Name(), Why: "no answer"}, snapshot.Fault{Where: "elsewhere", Why: "no answer"})
	for range r.IntN(4) {
		spoil(r, s.Fabric)
	}
	return s
}

// spoil changes something that counts.
func spoil(r *rand.Rand, f *observed.Fabric) {
	ends := f.EndPorts()
	p, n := ends[r.IntN(len(ends))], f.Nodes[r.IntN(len(f.Nodes))]
	q := &n.Ports[1+r.IntN(len(n.Ports)-1)]
	switch r.IntN(7) {
	case 0:
		q.Info.PartitionEnforcementInbound = false
	case 1:
		if len(p.PKeys) > 1 {
			p.PKeys[1] = ib.PKey(0x8000 + 1 + r.IntN(5)*0x111)
		}
	case 2:
		p.MarkUnread(smp.AttrPKeyTable, 0)
	case 3:
		p.Info.MKey, q.Info.MKey = ib.MKey(p.GUID), 0x1234
	case 4:
		p.Info.LID = ends[0].Info.LID
	case 5:
		n.Contested = true
	case 6:
		q.Info.PKeyViolations = 7
	}
}

// verdicts is everything that the judges say of a fabric, without names.
func verdicts(s *snapshot.Snapshot) (out []string) {
	open, tables := isolation.ProveWithoutPolicy(s.Fabric), isolation.Prove(s.Fabric, isolation.AsTables(s.Fabric))
	groups := isolation.ProveMulticast(s.Fabric, isolation.AsTables(s.Fabric), nil)
	out = append(out, fmt.Sprint(open.Verdict, open.Counts, tables.Verdict, tables.Counts, groups.Verdict, len(groups.Spreads)))
	a := auditOf(s, audit.Options{Profile: audit.Strict, KeysConcealed: true})
	out = append(out, fmt.Sprint(a.Counts, a.Passed, a.Skipped, a.NotCheckable))
	for _, x := range a.Findings {
		out = append(out, fmt.Sprint(x.Check, x.Severity))
	}
	ends := s.Fabric.EndPorts()
	for i, p := range ends {
		for j, q := range ends {
			if i == j {
				continue
			}
			w := reach.Explain(p, q, reach.View{})
			said := fmt.Sprint(i, j, w.Cause, len(w.Shared), len(w.Remedies))
			for _, x := range w.Shared {
				if x.There != nil {
					said += fmt.Sprint(x.There.Disposition, x.Back.Disposition)
				}
			}
			out = append(out, said)
		}
	}
	return out
}

// What the judges say of an anonymized snapshot is what they say of the original.
func TestAnonymizedHasTheSameVerdicts(t *testing.T) {
	seen := map[isolation.Verdict]bool{}
	for seed := range uint64(12) {
		s := managed(t, seed)
		path := filepath.Join(t.TempDir(), "snap")
		if err := daemon.SaveAnonymized(path, s); err != nil {
			t.Fatal(err)
		}
		other, err := daemon.LoadSnapshot(path)
		if err != nil {
			t.Fatal(err)
		}
		seen[isolation.Prove(s.Fabric, isolation.AsTables(s.Fabric)).Verdict] = true
		want, got := verdicts(s), verdicts(other)
		if !reflect.DeepEqual(want, got) {
			for i := range want {
				if i >= len(got) || want[i] != got[i] {
					t.Fatalf("seed %d: %d verdicts and %d; the original has %s, the anonymized %s", seed, len(want), len(got), want[i], got[min(i, len(got)-1)])
				}
			}
		}
	}
	if len(seen) < 2 {
		t.Errorf("all fabrics have the same verdict: %v", seen)
	}
}
