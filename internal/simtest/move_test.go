package simtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
	"github.com/ibwarden/ibwarden/internal/routing"
	"github.com/ibwarden/ibwarden/internal/sm"
	"github.com/ibwarden/ibwarden/internal/transport/inproc"
)

// BenchmarkMoveOneHost moves one host from a tenant to another and back, with a
// manager that is up: what it takes on the wire and at the manager, with the
// proof of the whole fabric.
func BenchmarkMoveOneHost(b *testing.B) {
	for _, spec := range []string{"demo", "fattree,radix=36,levels=2", "fattree,radix=36,levels=3"} {
		list := generate(b, spec)
		all := hosts(list)
		b.Run(fmt.Sprintf("%d hosts", len(all)), func(b *testing.B) {
			f, err := fabricsim.New(list, fabricsim.DefaultConfig())
			if err != nil {
				b.Fatal(err)
			}
			link, err := inproc.New(f, list.Nodes[0].GUID, firstPort(list.Nodes[0].Type), false)
			if err != nil {
				b.Fatal(err)
			}
			here := halves(all)
			there := here.move(all[1], 0x10, 0x20)
			var last *sm.Result
			engine := sm.New(sm.Config{Limits: link.Limits(), Routing: routing.UpDown}, here.policy(), func(e sm.Event) {
				if c, ok := e.(sm.Completed); ok {
					last = c.Result
				}
			})
			settle := func() {
				if err := link.Drive(context.Background(), engine, engine.Settled); err != nil {
					b.Fatal(err)
				}
				if last == nil || !last.Proof.Verdict.Holds() || !last.Reached() {
					b.Fatalf("result %+v", last)
				}
			}
			settle()
			policies := [2]tenancy{there, here}
			sent := engine.Counts().Sent
			b.ResetTimer()
			for i := range b.N {
				engine.SetPolicy(policies[i%2].policy())
				last = nil
				engine.Expire(f.Now())
				settle()
			}
			b.ReportMetric(float64(engine.Counts().Sent-sent)/float64(b.N), "SMPs/op")
		})
	}
}

func firstPort(t ib.NodeType) ib.PortNum {
	if t == ib.NodeSwitch {
		return 0
	}
	return 1
}
