package ibsimd_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
)

// loop asks the same count times and waits for each answer, as libibmad does,
// and returns how many answers a second came. Nothing is between it and the
// kernel: what it measures is the simulator.
func loop(t testing.TB, c *rawClient, question []byte, count int) float64 {
	t.Helper()
	f, err := c.data.File()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := int(f.Fd())
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 400)
	begin := time.Now()
	for range count {
		if _, err := unix.Write(fd, question); err != nil {
			t.Fatal(err)
		}
		if n, err := unix.Read(fd, answer); err != nil || n != len(question) || answer[32+3] != 0x81 {
			t.Fatalf("answer of %d bytes, %v", n, err)
		}
	}
	return float64(count) / time.Since(begin).Seconds()
}

// BenchmarkLoopAgainstIbsim asks one thing at a time on both simulators, in
// turn, and gives the rates and their ratio.
func BenchmarkLoopAgainstIbsim(b *testing.B) {
	tools := needTools(b)
	theirs, err := ibsimtest.StartSim(tools, b.TempDir(), topology.Demo())
	if err != nil {
		b.Fatal(err)
	}
	defer theirs.Stop()
	ours := simulate(b)
	for _, c := range []struct {
		name string
		path []byte
	}{{"hops=0", nil}, {"hops=2", []byte{1, 5}}} {
		b.Run(c.name, func(b *testing.B) {
			d := nodeInfo(1, c.path...)
			x, y := attach(b, ours.name, ""), attach(b, theirs.Name, "")
			defer x.ask(ctlDisconnect, nil)
			defer y.ask(ctlDisconnect, nil)
			var we, they, ratios []float64
			for b.Loop() {
				p, q := loop(b, x, d.bytes(), 2000), loop(b, y, d.bytes(), 2000)
				we, they, ratios = append(we, p/1000), append(they, q/1000), append(ratios, p/q)
			}
			b.ReportMetric(median(we), "ours_k/s")
			b.ReportMetric(median(they), "ibsim_k/s")
			b.ReportMetric(median(ratios), "ratio")
		})
	}
}
