package inproc_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/fabricsim"
	"github.com/ibwarden/ibwarden/internal/netlist"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/sm"
	"github.com/ibwarden/ibwarden/internal/transact"
	"github.com/ibwarden/ibwarden/internal/transport/inproc"
)

func TestZZ(t *testing.T) {
	_ = smp.AttrNodeInfo
	for _, spec := range []string{"demo", "fattree,radix=8,levels=3", "fattree,radix=24"} {
		for name, lim := range map[string]func(f *fabricsim.Fabric) (a, b time.Duration){
			"1us":   func(f *fabricsim.Fabric) (a, b time.Duration) { return 200 * time.Microsecond, time.Microsecond },
			"20us":  func(f *fabricsim.Fabric) (a, b time.Duration) { return 200 * time.Microsecond, 20 * time.Microsecond },
			"rt":    func(f *fabricsim.Fabric) (a, b time.Duration) { return 4 * f.RoundTrip(), f.RoundTrip() },
		} {
			base := time.Duration(0)
			line := fmt.Sprintf("%-26s %-5s", spec, name)
			for i, loss := range []float64{0, 0.05, 0.05, 0.05} {
				l := netlist.Demo()
				if spec != "demo" {
					l, _ = netlist.Generate(spec)
				}
				c := fabricsim.DefaultConfig()
				c.Loss = loss
				c.Seed = uint64(i)
				f, err := fabricsim.New(l, c)
				if err != nil {
					t.Fatal(err)
				}
				n, num, _ := l.Attach("")
				link, _ := inproc.New(f, n.GUID, num, false)
				limits := transact.DefaultLimits()
				limits.FirstTimeout, limits.MinTimeout = lim(f)
				done := false
				bad := ""
				p := &policy.Policy{}
				e := sm.New(sm.Config{Limits: limits, Routing: "updn"}, p, func(ev sm.Event) {
					switch ev := ev.(type) {
					case sm.Completed:
						done = true
						if !ev.Result.Reached() { bad = " NOTREACHED" }
					case sm.Refused:
						t.Fatal(ev)
					}
				})
				_ = link.SetIsSM(true)
				wall := time.Now()
				if err := link.Drive(t.Context(), e, func() bool { return done }); err != nil {
					t.Fatal(err)
				}
				w := time.Since(wall)
				if base == 0 {
					base = f.Now()
				}
				line += fmt.Sprintf(" | loss %v: %v (x%.2f) wall %v retried %d/%d%s", loss, f.Now(), float64(f.Now())/float64(base), w.Round(time.Millisecond), e.Counts().Retried, e.Counts().Sent, bad)
			}
			fmt.Println(line)
		}
	}
}
