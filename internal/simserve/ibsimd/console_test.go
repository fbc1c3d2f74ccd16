package ibsimd_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
)

// desk is a console on a fabric that is up.
type desk struct {
	testing.TB
	server  *ibsimd.Server
	console *ibsimd.Console
	out     bytes.Buffer
}

func newDesk(t *testing.T) *desk {
	d := &desk{TB: t, server: serve(t, small(t), ibsimd.Config{Fabric: fabric.DefaultConfig()})}
	bringUp(t, d.server)
	d.console = ibsimd.NewConsole(d.server, &d.out)
	return d
}

// do carries out a command that has to succeed and returns what it printed.
func (d *desk) do(line string) string {
	d.Helper()
	d.out.Reset()
	if err := d.console.Execute(line); err != nil {
		d.Fatalf("%s: %v", line, err)
	}
	return d.out.String()
}

func TestConsoleSeesTheFabric(t *testing.T) {
	d := newDesk(t)
	for line, want := range map[string]string{
		`Dump`:                   `"three"`,
		`dump "sw"`:              "LID 4 by port 2\n",
		`DUMP two`:               `[1] "sw"[2] LID 4 LMC 0`,
		`dump "the switch"`:      `[4] "two"[2]`,
		`Route "one" "three"`:    `"sw"[3] to "three"[1]`,
		`route 2 8`:              `"one"[1] to "sw"[1]`,
		`Route "one"[1] "sw"`:    `"one"[1] to "sw"[1]`,
		`Route "three" "two"[2]`: "no further",
		`Attached`:               "0 control requests refused",
		`Help`:                   "Unlink",
		`?`:                      "Quit",
		`# nothing "at all`:      "",
		``:                       "",
		`   `:                    "",
		`performanceset "sw"[1] PortCounters.SymbolErrorCounter=7`: "",
	} {
		if got := d.do(line); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: printed %q, want %q in it", line, got, want)
		}
	}
}

func TestConsoleRefuses(t *testing.T) {
	d := newDesk(t)
	for line, want := range map[string]string{
		`fly`:                           `no command "fly"`,
		`unlnik x`:                      `no command "unlnik"; did you mean 'Unlink'?; Help lists them`,
		`dump "nobody"`:                 `no node "nobody"`,
		`dump "sw`:                      "quotation mark",
		`route 2`:                       "no node is named",
		`route 2 77`:                    "no port has LID 77",
		`link "one"[1] "two"[1]`:        "has a cable already",
		`link "one" "two"[1]`:           "both ends need a port",
		`link "one"[1]`:                 "no node is named",
		`link "sw"[5] "two"[1]`:         "want [0] to [4]",
		`link "sw"[x] "two"[1]`:         "want [0] to [4]",
		`link "sw"[1 "two"[1]`:          "want [0] to [4]",
		`unlink "sw"[0]`:                "there is no cable",
		`relink "two"[1]`:               "no cable was pulled",
		`error "sw"[1] 101`:             "up to 100",
		`error "sw"[1]`:                 "percent",
		`baselid "sw"[1] 5`:             "end port",
		`baselid "one" 5`:               "end port",
		`baselid "one"[1] 0xC000`:       "up to",
		`baselid "one"[1] 5 9`:          "up to 7",
		`baselid "one"[1] 0`:            "is none",
		`baselid "one"[1] 5 2`:          "is none",
		`performanceset "one"[1] X.Y=1`: "want PortCounters",
		`performanceset "one"[1] PortCounters.X=1`:           "no counter",
		`performanceset "one"[1] PortCounters`:               "want a counter and a number",
		`performanceset "one"[0] PortCounters.VL15Dropped=1`: "no port 0",
		`Noise "sw"[1] 101`:                                  "up to 100",
		`Noise "sw" 5`:                                       "want a port from 1 up",
		`Reckless "sw"[1]`:                                   "want on or off",
		`Reckless "sw"[0] on`:                                "want a port from 1 up",
		`Withhold "sw"[1] perhaps`:                           "want on or off",
		`x 11`:                                               "up to 9",
		`x 5`:                                                "no client 5",
		`x`:                                                  "up to 9",
		`Wait long`:                                          "want a number",
		`Clear "one"[1]`:                                     "not there",
		`Guid "one" 0x5`:                                     "not there",
		`verbose 3`:                                          "not there",
		`start`:                                              "not there",
		`! /no/such/file`:                                    "no such file",
		`reboot "nobody"`:                                    "no node",
	} {
		err := d.console.Execute(line)
		if want == "" != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q in it", line, err, want)
		}
	}
}

func TestConsoleChangesTheFabric(t *testing.T) {
	d := newDesk(t)
	c := attach(t, d.server.Name(), "one")
	reaches := func(path ...byte) bool { return c.query(nodeInfo(1, path...)).status == 0 }
	d.do(`UNLINK "sw"[2]`)
	if reaches(1, 2) || !reaches(1, 4) {
		t.Error("Unlink of a port")
	}
	d.do(`relink "two"[1]`)
	if !reaches(1, 2) {
		t.Error("ReLink from the other end")
	}
	d.do(`unlink "two"`)
	if reaches(1, 2) || reaches(1, 4) {
		t.Error("Unlink of a node")
	}
	d.do(`link "two"[1] "sw"[4]`)
	if !reaches(1, 4) {
		t.Error("Link")
	}
	if err := d.console.Execute(`relink "two"`); err == nil || reaches(1, 2) {
		t.Errorf("ReLink of a cable whose ends are taken: %v", err)
	}
	d.do(`Error "three"[1] 100`)
	if reaches(1, 3) {
		t.Error("Error 100: a packet gets through")
	}
	d.do(`Error "three" 100 0x15`)
	if !reaches(1, 3) || c.query(directed(1, mad.MethodGet, 0x15, 0, 1, 3)).status != 110 {
		t.Error("Error 100 for PortInfo alone")
	}
	d.do(`Error "three" 0`)
	if c.query(directed(1, mad.MethodGet, 0x15, 0, 1, 3)).status != 0 {
		t.Error("Error 0 does not end it")
	}
	d.do(`baselid "three"[1] 0x20 1`)
	if text := d.do(`dump "three"`); !strings.Contains(text, "LID 32 LMC 1") {
		t.Error(text)
	}
	c.isSM(1)
	d.do(`Reboot "one"`)
	if !isSM(t, d.server, d.server.Topology().Nodes[0].GUID) || !strings.Contains(d.do(`dump "one"`), "LID 0 ") {
		t.Error("after Reboot a port has no address, and the manager is there still")
	}
}

func TestConsoleSetsCounters(t *testing.T) {
	d := newDesk(t)
	c := attach(t, d.server.Name(), "one")
	d.do(`PerformanceSet "sw"[3] PortCounters.PortXmitDiscards = 70000`)
	q := general(1, mad.ClassPerfMgt, mad.MethodGet, pm.AttrPortCounters, lidSwitch)
	q.mad[65] = 3
	var v pm.PortCounters
	if r := c.query(q); v.UnmarshalBinary(r.mad[64:]) != nil || v.PortXmitDiscards != 0xFFFF {
		t.Errorf("%+v", v)
	}
}

func TestConsoleAndClients(t *testing.T) {
	d := newDesk(t)
	c := attach(t, d.server.Name(), "two")
	c.isSM(1)
	c.alive()
	if text := d.do("attached"); !strings.Contains(text, fmt.Sprintf("client %d: at two[1], a subnet manager", c.slot)) {
		t.Error(text)
	}
	d.do(fmt.Sprintf("X %d", c.slot))
	if text := d.do("attached"); strings.Contains(text, "client") {
		t.Error(text)
	}
	if kind, _ := c.ask(ctlGetPort, nil); kind != ctlError {
		t.Errorf("a client that was forgotten: answer %d", kind)
	}
}

// Lines come from a reader or a file; Wait keeps the console alone.
func TestConsoleRuns(t *testing.T) {
	d := newDesk(t)
	file := filepath.Join(t.TempDir(), "commands")
	text := fmt.Sprintf("# a file\nunlink \"three\"\n!%s\n", file) // calls itself
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.console.Run(strings.NewReader("! "+file+"\nnonsense\nrelink three\n"), "> "); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"> ", "# no command \"nonsense\"", "deep", "there is no cable"} {
		if !strings.Contains(d.out.String(), want) {
			t.Errorf("printed %q, want %q in it", &d.out, want)
		}
	}
	begin := time.Now()
	if err := d.console.Run(strings.NewReader("wait 1\nQuit\nnonsense\n"), ""); !errors.Is(err, ibsimd.ErrQuit) {
		t.Errorf("Quit: %v", err)
	}
	if took := time.Since(begin); took < time.Second {
		t.Errorf("Wait 1 took %v", took)
	}
}

func FuzzConsole(f *testing.F) {
	for _, line := range []string{
		`dump "sw"`, `route 2 8`, `link "one"[1] "two"[1]`, `relink "two"`, `unlink "sw"[3]`, `error "sw"[1] 50 0x11`,
		`performanceset "sw"[1] PortCounters.PortXmitData=1`, `baselid "two"[1] 9 0`, `x 3`, `"`, `dump [`, `reboot "one"`,
	} {
		f.Add(line)
	}
	s := serve(f, small(f), ibsimd.Config{})
	var out bytes.Buffer
	console := ibsimd.NewConsole(s, &out)
	f.Fuzz(func(t *testing.T, line string) {
		out.Reset()
		if word := strings.ToLower(strings.TrimSpace(line)); strings.HasPrefix(word, "wait") || strings.HasPrefix(word, "!") {
			return
		}
		if err := console.Execute(line); err != nil && err.Error() == "" {
			t.Error("an error that says nothing")
		}
	})
}
