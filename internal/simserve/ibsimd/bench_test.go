package ibsimd_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link/ibsim"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
)

// asker is an engine that asks for one thing over and over.
type asker struct {
	window   *transact.Window
	request  transact.Request
	answered int
	failed   error
	left     int
}

func newAsker(width, count int, r transact.Request) *asker {
	limits := transact.DefaultLimits()
	limits.Window, limits.FirstTimeout = width, time.Second
	limits.MinTimeout = 500 * time.Millisecond
	a := &asker{window: transact.NewWindow(limits), request: r, left: count}
	for range width {
		a.ask()
	}
	return a
}

func (a *asker) ask() {
	if a.left == 0 {
		return
	}
	a.left--
	a.window.Do(a.request, func(r transact.Reply) {
		a.answered++
		if r.Err != nil {
			a.failed = r.Err
		}
		a.ask()
	})
}

func (a *asker) Next(now time.Duration, p *mad.SMP) (ib.LID, bool) {
	if !a.window.Next(now, p) {
		return 0, false
	}
	return a.window.LIDOf(p), true
}
func (a *asker) Receive(now time.Duration, p *mad.SMP, _ ib.LID) { a.window.Receive(now, p) }
func (a *asker) Lost(now time.Duration, p *mad.SMP)              { a.window.Lost(now, p) }
func (a *asker) Expire(now time.Duration)                        { a.window.Expire(now) }
func (a *asker) Deadline() (time.Duration, bool)                 { return a.window.Deadline() }

// rate is how many answers a second a simulator gives.
func rate(t testing.TB, socket, host string, width, count int, r transact.Request) float64 {
	t.Helper()
	link, err := ibsim.Dial(ibsim.Environment{SockName: socket, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	a := newAsker(width, count, r)
	begin := time.Now()
	if err := link.Drive(context.Background(), a, func() bool { return a.window.Idle() }); err != nil {
		t.Fatal(err)
	}
	if a.failed != nil {
		t.Fatal(a.failed)
	}
	return float64(a.answered) / time.Since(begin).Seconds()
}

// BenchmarkAgainstIbsim asks both simulators for NodeInfo, in turn and with the
// same client, and gives the rates and their ratio.
func BenchmarkAgainstIbsim(b *testing.B) {
	tools := needTools(b)
	l := topology.Demo()
	theirs, err := ibsimtest.StartSim(tools, b.TempDir(), l)
	if err != nil {
		b.Fatal(err)
	}
	defer theirs.Stop()
	ours := simulate(b)
	for _, hops := range []mad.Path{{}, {1, 5}} {
		for _, width := range []int{1, 8, 32, 128} {
			b.Run(fmt.Sprintf("hops=%d/window=%d", len(hops), width), func(b *testing.B) {
				r := transact.Request{Path: hops, Method: mad.MethodGet, Attribute: smp.AttrNodeInfo}
				var we, they, ratios []float64
				for b.Loop() {
					// Short turns: what else the machine does hits both alike.
					x := rate(b, ours.name, "", width, 5_000, r)
					y := rate(b, theirs.Name, "", width, 5_000, r)
					we, they, ratios = append(we, x/1000), append(they, y/1000), append(ratios, x/y)
				}
				b.ReportMetric(median(we), "ours_k/s")
				b.ReportMetric(median(they), "ibsim_k/s")
				b.ReportMetric(median(ratios), "ratio")
			})
		}
	}
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

// BenchmarkBringUpAgainstIbsim lets ibwarden bring up a tree of 648 hosts on
// both simulators, in turn, and gives the times and their ratio. It writes more
// here, where switches can check keys.
func BenchmarkBringUpAgainstIbsim(b *testing.B) {
	tools := needTools(b)
	path, err := ibwarden()
	if err != nil {
		b.Fatal(err)
	}
	l := topologyOf(b, "fattree,radix=36,levels=2")
	file := netfile(b, l)
	seconds := func(socket string) (took, perSMP float64) {
		cmd := exec.Command(path, "run", "--once", "--json", "--fabric", "ibsim:"+socket)
		begin := time.Now()
		out, err := cmd.Output()
		if err != nil {
			b.Fatalf("ibwarden run: %v\n%s", err, out)
		}
		took = time.Since(begin).Seconds()
		var d struct{ SMPs struct{ Get, Set int } }
		if err := json.Unmarshal(out, &d); err != nil {
			b.Fatal(err)
		}
		return took, took / float64(d.SMPs.Get+d.SMPs.Set)
	}
	var we, they, ratios, perSMP []float64
	for b.Loop() {
		theirs, err := ibsimtest.StartSim(tools, b.TempDir(), l)
		if err != nil {
			b.Fatal(err)
		}
		ours := simulate(b, file)
		x, xs := seconds(ours.name)
		y, ys := seconds(theirs.Name)
		ours.end(b)
		theirs.Stop()
		we, they, ratios, perSMP = append(we, x), append(they, y), append(ratios, y/x), append(perSMP, ys/xs)
	}
	b.ReportMetric(median(we), "ours_s")
	b.ReportMetric(median(they), "ibsim_s")
	b.ReportMetric(median(ratios), "ratio")
	b.ReportMetric(median(perSMP), "ratio_per_SMP")
}
