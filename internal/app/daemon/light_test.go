package daemon_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/mastership"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// The light of a device is switched where it has one, and of no other.
func TestLight(t *testing.T) {
	to := broughtUp(t)
	defer to.Close()
	with, without := 0, 0
	for _, p := range snap(t, to, sweep.Options{}).Fabric.EndPorts() {
		for _, on := range []bool{true, false} {
			err := daemon.Light(t.Context(), to, p, on)
			if p.Info.CapabilityMask.Has(smp.CapLEDInfo) {
				if with++; err != nil {
					t.Errorf("%s: %v", p, err)
				}
			} else if without++; !errors.Is(err, daemon.ErrNoLight) {
				t.Errorf("%s has no light: %v", p, err)
			}
		}
		p.Info.CapabilityMask &^= smp.CapLEDInfo
		if err := daemon.Light(t.Context(), to, p, true); !errors.Is(err, daemon.ErrNoLight) {
			t.Errorf("%s says that it has no light: %v", p, err)
		}
		for _, unread := range []func(){func() { p.InfoRead = false }, func() { p.InfoRead, p.Reached = true, false }} {
			unread()
			if err := daemon.Light(t.Context(), to, p, true); err == nil || errors.Is(err, daemon.ErrNoLight) {
				t.Errorf("%s was not read: %v", p, err)
			}
		}
	}
	if with+without == 0 {
		t.Error("no end ports")
	}
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A directory of data is the owner's alone; its list of cables is none until it was saved.
func TestDataDir(t *testing.T) {
	t.Setenv(daemon.DataVariable, "/elsewhere")
	for _, fabric := range []string{"sim", "umad", ""} {
		if d, err := daemon.DefaultDataDir(fabric); d != "/elsewhere" || err != nil {
			t.Errorf("%s, by the variable: %q, %v", fabric, d, err)
		}
	}
	t.Setenv(daemon.DataVariable, "")
	t.Setenv("XDG_STATE_HOME", "/states")
	for fabric, want := range map[string]bool{"sim": false, "sim:umad": false, "umad": true, "umad:mlx5_0/1": true, "umadx": false, "": false} {
		if d, err := daemon.DefaultDataDir(fabric); (d != "") != want || err != nil {
			t.Errorf("%s: %q, %v", fabric, d, err)
		}
	}
	path := filepath.Join(t.TempDir(), "a", "b")
	d, err := daemon.OpenDataDir(path)
	if err != nil || d.State() != filepath.Join(path, "state.json") || d.Cables() != filepath.Join(path, "cables.topology") {
		t.Fatalf("%q, %v", d, err)
	}
	for _, none := range []daemon.DataDir{"", d} {
		if l, err := none.LoadCables(); l != nil || err != nil {
			t.Errorf("%q: %v, %v", none, l, err)
		}
	}
	tree, err := topology.Generate("fattree,radix=4,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := tree.WriteIbnetdiscover(&text); err != nil {
		t.Fatal(err)
	}
	list, err := cables.Read(text.Bytes(), "a list")
	if err != nil {
		t.Fatal(err)
	}
	if err := daemon.SaveCables(d.Cables(), list); err != nil {
		t.Fatal(err)
	}
	if l, err := d.LoadCables(); err != nil || !slices.Equal(l.All(), list.All()) {
		t.Errorf("saved, and read as %v, %v", l, err)
	}
	if err := os.WriteFile(d.Cables(), []byte("no list\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if l, err := d.LoadCables(); l != nil || err == nil {
		t.Errorf("what is no list is read as %v", l)
	}
	if err := daemon.SaveCables(filepath.Join(path, "nowhere", "x"), list); err == nil {
		t.Error("saved in a directory that is not there")
	}
	if _, err := daemon.OpenDataDir(d.Cables()); err == nil {
		t.Error("a file is taken for a directory")
	}
	for mode, good := range map[os.FileMode]bool{0o700: true, 0o701: false, 0o710: false, 0o750: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := daemon.OpenDataDir(path); (err == nil) != good {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}

// The right to write is told in the time of the engine, and ends there no later than in that of
// the store. Nobody who was given none has it.
func TestGranted(t *testing.T) {
	var x daemon.Granted
	if g := x.At(time.Hour); g != (mastership.Grant{}) {
		t.Errorf("%+v before any was given", g)
	}
	const passed = time.Minute
	for _, g := range []mastership.Grant{{Term: 3, Since: 10 * time.Second, Until: 2 * time.Minute, Why: "w"}, {Term: 4, Until: time.Hour}, {Term: 1, Since: time.Nanosecond, Until: time.Minute}} {
		x.Set(g, time.Now().Add(-passed))
		now := 10 * time.Second // of the engine: its clock began later than the origin
		got := x.At(now)
		if end := g.Until + now - passed; got.Until > end || got.Term != g.Term || got.Why != g.Why || x.Seen() < passed {
			t.Errorf("%+v is told as %+v, which ends after %v; seen at %v", g, got, end, x.Seen())
		}
		if (got.Since != 0) != (g.Since != 0) || got.Since < 0 || g.Since > 0 && got.Since > max(g.Since+now-passed, 1) {
			t.Errorf("%+v is told since %v", g, got.Since)
		}
	}
}

// The managers of a fabric are the ports that say that there is one, and what these answer.
func TestFabricManagers(t *testing.T) {
	to := broughtUp(t)
	defer to.Close()
	list, faults, f, err := daemon.FabricManagers(t.Context(), to, sweep.Options{}, nil)
	if err != nil || len(faults) > 0 || f == nil || len(list) != 0 {
		t.Errorf("a fabric without a manager: %+v, %v, %v", list, faults, err)
	}
	if err := to.(interface{ SetIsSM(bool) error }).SetIsSM(true); err != nil {
		t.Fatal(err)
	}
	list, _, f, err = daemon.FabricManagers(t.Context(), to, sweep.Options{}, nil)
	if err != nil || len(list) != 1 || list[0].Port != f.Self.GUID || !list[0].IsSM || list[0].Answered || list[0].Missed != 2 || list[0].Trust != observed.TrustUnknown {
		t.Errorf("one that does not answer: %+v, %v", list, err)
	}
}
