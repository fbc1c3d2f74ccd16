package scaletest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/ibsimtest"
	"github.com/ibwarden/ibwarden/test/need"
)

// bringUpTime bounds a bring-up by the clock.
const bringUpTime = 20 * time.Minute

// asleep reports whether all threads of a process sleep, and none of them in the kernel for
// a device.
func asleep(pid int) bool {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(threads) == 0 {
		return false
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if err != nil {
			return false
		}
		// The state comes after the name, which may have any character in it.
		_, state, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
		if !ok || len(state) == 0 || state[0] != 'S' {
			return false
		}
	}
	return true
}

// openSMUp has OpenSM bring a fabric up, whose time stands still while OpenSM works.
func openSMUp(t testing.TB, list *topology.Netlist, h *fabric.Hardware, window int) taken {
	t.Helper()
	tools, err := ibsimtest.FindTools()
	need.Need(t, err)
	var m meter
	var pid atomic.Int32
	c := fabric.DefaultConfig()
	c.Hardware, c.Trace = h, m.see
	s, err := ibsimd.Listen(list, ibsimd.Config{
		Socket: fmt.Sprintf("hardware-%d-%d", os.Getpid(), time.Now().UnixNano()), Fabric: c,
		Quiet: func() bool { return pid.Load() != 0 && asleep(int(pid.Load())) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx, end := context.WithTimeout(t.Context(), bringUpTime)
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	defer func() { end(); <-served }()
	if err := s.Do(func(f *fabric.Fabric) { m.fabric = f }); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, log := filepath.Join(dir, "partitions.conf"), filepath.Join(dir, "opensm.log")
	if err := os.WriteFile(file, []byte(conf(list)), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, tools.OpenSM, ibsimtest.LogLimit, "-F", os.DevNull, "-P", file, "-e", "-f", log, "-o", "-R", "ftree", "--maxsmps", fmt.Sprint(window))
	cmd.Env = append(os.Environ(), s.Environment()...)
	cmd.Env = append(cmd.Env, "LD_PRELOAD="+tools.Umad2sim, "OSM_TMP_DIR="+dir, "OSM_CACHE_DIR="+dir)
	cmd.Dir = dir
	ibsimtest.EndWithThis(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid.Store(int32(cmd.Process.Pid))
	err = cmd.Wait()
	text, _ := os.ReadFile(log)
	if err != nil || !strings.Contains(string(text), "SUBNET UP") {
		t.Fatalf("OpenSM: %v\n%.3000s", err, text)
	}
	var out taken
	if err := s.Do(func(f *fabric.Fabric) {
		out = taken{time: f.Now(), sent: f.Counts().Sent, most: m.most, mean: m.area / m.last.Seconds()}
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOpenSMOnHardware: OpenSM, on the same clock with the same delays, has as many packets
// in flight as it is told, and takes the longer the fewer they are.
func TestOpenSMOnHardware(t *testing.T) {
	list := generate(t, "fattree,radix=4,levels=2")
	four, one := openSMUp(t, list, fabric.DefaultHardware(), 4), openSMUp(t, list, fabric.DefaultHardware(), 1)
	t.Log("maxsmps 4:", four)
	t.Log("maxsmps 1:", one)
	if four.time == 0 || one.time <= four.time || one.most > four.most {
		t.Errorf("with 1: %v, with 4: %v", one, four)
	}
}

// BenchmarkHardware prints how long a bring-up takes on hardware of a size.
// IBWARDEN_HARDWARE names the fabrics, as --fabric sim:... does, IBWARDEN_DELAYS the delays,
// as ibwarden sim --hardware does; OPENSM=0 leaves OpenSM out.
func BenchmarkHardware(b *testing.B) {
	delays := os.Getenv("IBWARDEN_DELAYS")
	if delays == "" {
		delays = "default"
	}
	h, err := fabric.ParseHardware(delays)
	if err != nil {
		b.Fatalf("IBWARDEN_DELAYS: %v", err)
	}
	specs := []string{"fattree,radix=36,levels=2", "fattree,radix=24,levels=3"}
	if text := os.Getenv("IBWARDEN_HARDWARE"); text != "" {
		specs = strings.Fields(text)
	}
	for _, spec := range specs {
		list := generate(b, spec)
		for _, window := range []int{4, 8, 16, 64, 128} {
			report(b, fmt.Sprintf("%s/ibwarden/window=%d", spec, window), func() taken { return bringUp(b, list, h, window) })
		}
		if os.Getenv("OPENSM") == "0" {
			continue
		}
		for _, window := range []int{4, 64} {
			report(b, fmt.Sprintf("%s/OpenSM/maxsmps=%d", spec, window), func() taken { return openSMUp(b, list, h, window) })
		}
	}
}

func report(b *testing.B, name string, run func() taken) {
	b.Run(name, func(b *testing.B) {
		var x taken
		for b.Loop() {
			x = run()
		}
		b.ReportMetric(0, "ns/op") // of this machine
		b.ReportMetric(x.time.Seconds(), "fabric-s")
		b.ReportMetric(float64(x.sent), "packets")
		b.ReportMetric(float64(x.most), "most-in-flight")
		b.ReportMetric(x.mean, "in-flight")
	})
}
