package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
	"github.com/ibwarden/ibwarden/internal/migrate/opensm"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/policy/protect"
)

// live are files that Debian's opensm 3.3.23 was given on the fabric of testdata/live/topology,
// managed from Hca1. NN.tables has the P_Key tables that it wrote, without trailing zeros.
var live = []struct {
	number, conf string
	// refused is what a fault says, announced what a line or an announcement does; differs
	// are the tables that are not OpenSM's.
	refused, unfit, announced string
	differs                   map[string]string
}{
	{number: "01", announced: "every port is a full member of the default partition"},
	{number: "02"},
	{number: "03"},
	{number: "04", refused: `4:1: P_Key 0x0001, which "P1" at 1:1 gets automatically`},
	{number: "05"},
	{number: "06", unfit: "index 0 is claimed by A (0x8010) and by B (0x8020)", announced: "OpenSM gives index 0 to the last of them"},
	{number: "07", announced: "both acts as full"},
	{number: "08", conf: "allow_both_pkeys TRUE\n", announced: "OpenSM leaves index 0 of the tables empty", differs: map[string]string{
		"Hca2": "7fff 0044 8044", "Hca3": "7fff 0044 8044", "Hca4": "7fff 0044", "Hca5": "7fff", "Switch1": "7fff", "Switch2": "7fff"}},
	{number: "09", refused: `2:12: port GUID "0xZZZ"`},
	{number: "10"},
	{number: "11"},
	{number: "12", unfit: "64", announced: "where OpenSM leaves out keys"},
	{number: "13", unfit: "8", announced: "where OpenSM leaves out keys"},
}

// The capacities of the simulator that OpenSM ran on.
const (
	hcaCap    = 64
	switchCap = 8
)

// read reads the fabric of testdata/live.
func read(t *testing.T) *observed.Fabric {
	t.Helper()
	l, err := daemon.Open("sim:testdata/live/topology", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	config := engine.Config{}
	text := []byte("version: 1\n")
	p, err := policyfile.ReadYAML(text, "none")
	if err != nil {
		t.Fatal(err)
	}
	r, err := daemon.Read(context.Background(), l, config.Reading(p))
	if err != nil {
		t.Fatal(err)
	}
	guids := map[string]ib.PortGUID{"Hca1": 0x100001, "Hca2": 0x100004, "Hca3": 0x100007, "Hca4": 0x10000a, "Hca5": 0x10000d}
	for _, n := range r.Fabric.Nodes {
		n.Info.PartitionCap = hcaCap
		if n.Switch != nil {
			n.Info.PartitionCap = switchCap
			continue
		}
		if guids[n.Name()] != n.Ports[1].GUID {
			t.Fatalf("%s has port GUID %v", n.Name(), n.Ports[1].GUID)
		}
	}
	if r.Fabric.Self == nil || r.Fabric.Self.Node.Name() != "Hca1" {
		t.Fatalf("read from %v", r.Fabric.Self)
	}
	return r.Fabric
}

// TestTablesAreOpenSMs: what a partitions.conf becomes has every end port hold what OpenSM had it
// hold, or the report says that it will not.
func TestTablesAreOpenSMs(t *testing.T) {
	for _, x := range live {
		t.Run(x.number, func(t *testing.T) {
			c, err := opensm.ReadConf(opensm.Text{Path: "opensm.conf", Data: []byte(x.conf)})
			if err != nil {
				t.Fatal(err)
			}
			files := map[opensm.Kind]opensm.Text{}
			text, err := os.ReadFile(filepath.Join("testdata/live", x.number+".conf"))
			if err == nil {
				files[opensm.Partitions] = opensm.Text{Path: "partitions.conf", Data: text}
			} else if x.number != "01" {
				t.Fatal(err)
			}
			r, err := opensm.Migrate(c, files, opensm.Options{PolicyPath: "policy.yaml"})
			if x.refused != "" {
				if err == nil || !strings.Contains(err.Error(), x.refused) {
					t.Errorf("%v, want %q", err, x.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(r.Announced, "\n")
			for i := range r.Lines {
				said += "\n" + r.Lines[i].Why
			}
			if !strings.Contains(said, x.announced) {
				t.Errorf("announced %s\nwant %q", said, x.announced)
			}
			p, err := policyfile.ReadYAML(r.PolicyText(), "policy.yaml")
			if err != nil {
				t.Fatal(err)
			}
			f := read(t)
			config := engine.Config{Profile: protect.Tenant, Routing: "updn"}
			want, err := desired.Predict(config.Desired(f), p)
			if x.unfit != "" {
				if err == nil || !strings.Contains(err.Error(), x.unfit) {
					t.Errorf("%v, want a table with room for %s", err, x.unfit)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			check(t, f, want.Tables, x.number, x.differs)
		})
	}
}

// check compares the tables of end ports with OpenSM's, and those of the switch ports before
// them with what these hold.
func check(t *testing.T, f *observed.Fabric, d *observed.Desired, number string, differs map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/live", number+".tables"))
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, keys, _ := strings.Cut(strings.TrimSpace(line), " ")
		theirs[name] = keys
	}
	if len(theirs) != len(f.Nodes) {
		t.Fatalf("%d tables for %d nodes", len(theirs), len(f.Nodes))
	}
	for _, q := range f.EndPorts() {
		name := q.Node.Name()
		keys := d.Port(q).PKeys
		want := theirs[name]
		if other, some := differs[name]; some {
			if other == want {
				t.Errorf("%s: no difference to be announced", name)
			}
			want = other
		}
		if got := keysText(keys); got != want {
			t.Errorf("%s holds %s, want %s", name, got, want)
		}
		if q.Node.Switch != nil {
			continue
		}
		before := d.Port(q.Peer).PKeys
		for _, k := range keys {
			if k != 0 && !slices.Contains(before, k|0x8000) {
				t.Errorf("the switch port before %s has no full key of %v: %s", name, k, keysText(before))
			}
		}
	}
}

func keysText(keys []ib.PKey) string {
	var out []string
	for _, k := range keys {
		out = append(out, fmt.Sprintf("%04x", uint16(k)))
	}
	for len(out) > 0 && out[len(out)-1] == "0000" {
		out = out[:len(out)-1]
	}
	return strings.Join(out, " ")
}
