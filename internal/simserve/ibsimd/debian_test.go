package ibsimd_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestDebianTools runs Debian's unmodified diagnostics against the server.
func TestDebianTools(t *testing.T) {
	tools := needTools(t)
	l := topology.Demo()
	s := socketName()
	serve(t, l, ibsimd.Config{Socket: s})
	a := at{TB: t, tools: tools, socket: s, host: "mgmt-1", dir: t.TempDir()}

	if out := a.run("smpquery", "nodeinfo", "-D", "0"); !strings.Contains(out, "Channel Adapter") {
		t.Errorf("smpquery nodeinfo:\n%s", out)
	}
	if out := a.run("smpquery", "pkeys", "-D", "0"); !strings.Contains(out, "0xffff") {
		t.Errorf("smpquery pkeys of a device that was just switched on:\n%s", out)
	}
	if out := a.run("smpquery", "portinfo", "-D", "0"); !strings.Contains(out, "Initialize") {
		t.Errorf("smpquery portinfo:\n%s", out)
	}
	if _, err := a.try("smpquery", "nodeinfo", "-D", "0,9"); err == nil {
		t.Error("smpquery got an answer from behind a port that does not exist")
	}
	found, _, err := topology.Read([]byte(a.run("ibnetdiscover")), "ibnetdiscover", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := links(found), links(l); !bytes.Equal(got, want) {
		t.Errorf("ibnetdiscover found\n%s\nwant\n%s", got, want)
	}
}

// links lists the cables of a topology.
func links(l *topology.Netlist) []byte {
	var b bytes.Buffer
	for _, x := range l.Links() {
		fmt.Fprintln(&b, x.A, x.APort, x.B, x.BPort)
	}
	return b.Bytes()
}
