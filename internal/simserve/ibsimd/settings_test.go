package ibsimd_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// settingsFabric has switches on two levels and more than one way between them.
const settingsFabric = "fattree,radix=4,levels=2"

// leveled is partitions with one of them on another service level, so that virtual lanes are used.
const leveled = `Default=0x7fff, ipoib : ALL=limited, ALL_SWITCHES=full, SELF=full ;
Red=0x0010, sl=1 : ALL=full ;
`

// held is what the ports of a kind hold: by kind, attribute and field, every value
// that occurs.
type held map[string]map[string]bool

// manyValues is from how many on the values of a field are not listed: each port has
// its own.
const manyValues = 4

func (h held) add(kind, attribute, field string, value any) {
	name := kind + " | " + attribute + "." + field
	if h[name] == nil {
		h[name] = make(map[string]bool)
	}
	h[name][fmt.Sprint(value)] = true
}

func (h held) values(name string) string {
	values := slices.Sorted(maps.Keys(h[name]))
	if len(values) >= manyValues {
		return "one of its own"
	}
	return strings.Join(values, " or ")
}

// fields enters every field of an attribute.
func (h held) fields(kind, attribute string, value any) {
	v := reflect.ValueOf(value)
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() {
			x := v.Field(i)
			if x.Kind() >= reflect.Int && x.Kind() <= reflect.Uint64 {
				h.add(kind, attribute, f.Name, fmt.Sprintf("%#x", v.Field(i).Convert(reflect.TypeFor[uint64]()).Interface()))
				continue
			}
			h.add(kind, attribute, f.Name, x.Interface())
		}
	}
}

// kindOf is what sort of port this is.
func kindOf(n *topology.Node, num int) string {
	switch {
	case num == 0:
		return "switch port 0"
	case n.Type != ib.NodeSwitch:
		return "CA"
	case n.Ports[num].Peer.Type == ib.NodeSwitch:
		return "switch to switch"
	}
	return "switch to CA"
}

// holds reads what devices hold.
func holds(t *testing.T, s *ibsimd.Server) held {
	t.Helper()
	h := held{}
	err := s.Do(func(f *fabric.Fabric) {
		for _, n := range s.Topology().Nodes {
			a := f.Agent(n.GUID)
			if w := a.SwitchInfo(); w != nil {
				h.fields("switch", "SwitchInfo", *w)
			}
			for num := range n.Ports {
				p := a.Port(ib.PortNum(num))
				if p == nil || num > 0 && n.Ports[num].Peer == nil {
					continue
				}
				kind := kindOf(n, num)
				h.fields(kind, "PortInfo", *p)
				if num == 0 {
					continue
				}
				high, low := a.VLArbitration(ib.PortNum(num))
				h.add(kind, "VLArbitration", "High", turnsOf(high))
				h.add(kind, "VLArbitration", "Low", turnsOf(low))
				var lanes []string
				for sl := range ib.SL(smp.SLCount) {
					lanes = append(lanes, fmt.Sprint(a.VL(0, ib.PortNum(num), sl)))
				}
				h.add(kind, "SLtoVL", "VLs", strings.Join(lanes, ","))
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// turnsOf are the entries of a table that have a weight.
func turnsOf(table []smp.VLArbitrationEntry) string {
	var out []string
	for _, e := range table {
		if e.Weight > 0 {
			out = append(out, fmt.Sprintf("%d:%d", e.VL, e.Weight))
		}
	}
	return strings.Join(out, ",")
}

// documented are the rows of docs/dev/opensm.md on what OpenSM sets otherwise: for each
// case, by kind and field, the two values.
func documented(t *testing.T, title string) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/dev/opensm.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, found := strings.Cut(string(text), "### "+title+"\n")
	if !found {
		t.Fatalf("docs/dev/opensm.md has no part %q", title)
	}
	part, _, _ = strings.Cut(part, "\n#")
	rows := map[string][2]string{}
	for line := range strings.Lines(part) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[0], "---") || strings.TrimSpace(cells[0]) == "at" {
			continue
		}
		for i := range cells {
			cells[i] = strings.Trim(strings.TrimSpace(cells[i]), "`")
		}
		if len(cells[4]) < 10 {
			t.Errorf("%s: no reason", line)
		}
		for kind := range strings.SplitSeq(cells[0], ", ") {
			rows[kind+" | "+cells[1]] = [2]string{cells[2], cells[3]}
		}
	}
	if len(rows) < 5 {
		t.Fatalf("docs/dev/opensm.md, %q: %d rows: not read right", title, len(rows))
	}
	return rows
}

// What OpenSM sets on a fabric, and what ibwarden does, attribute by attribute:
// every difference is in docs/dev/opensm.md, and no other one is.
func TestSettingsComparedWithOpenSM(t *testing.T) {
	need.Long(t, "OpenSM with each of several settings")
	tools := needTools(t)
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	for title, c := range map[string]struct {
		policy  string
		options []string
	}{
		"One service level":  {partitions, nil},
		"Two service levels": {leveled, []string{"qos TRUE"}},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			theirs := serve(t, topologyOf(t, settingsFabric), ibsimd.Config{Fabric: fabric.DefaultConfig()})
			o := at{TB: t, tools: tools, socket: theirs.Name(), dir: workDir(t)}.openSM(c.policy, up, c.options...)
			o.stop()
			ours := serve(t, topologyOf(t, settingsFabric), ibsimd.Config{Fabric: fabric.DefaultConfig()})
			dir := t.TempDir()
			conf := filepath.Join(dir, "partitions.conf")
			if err := os.WriteFile(conf, []byte(c.policy), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(path, "run", "--once", "--fabric", "ibsim:"+ours.Name(), "--policy", conf, "--data", filepath.Join(dir, "data"))
			tame(cmd, dir)
			if out, err := cmd.CombinedOutput(); err != nil && cmd.ProcessState.ExitCode() > 1 {
				t.Fatalf("ibwarden run: %v\n%s", err, out)
			}
			compareSettings(t, holds(t, theirs), holds(t, ours), documented(t, title))
		})
	}
}

func compareSettings(t *testing.T, theirs, ours held, rows map[string][2]string) {
	t.Helper()
	names := maps.Clone(theirs)
	maps.Copy(names, ours)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		pair := [2]string{theirs.values(name), ours.values(name)}
		said, known := rows[name]
		switch {
		case pair[0] == pair[1] && known && said[0] != said[1]:
			t.Errorf("%s: docs/dev/opensm.md says %q and %q; both have %q", name, said[0], said[1], pair[0])
		case pair[0] != pair[1] && !known:
			t.Errorf("not in docs/dev/opensm.md: | %s | `%s` | `%s` |", name, pair[0], pair[1])
		case pair[0] != pair[1] && said != pair:
			t.Errorf("%s: docs/dev/opensm.md says %q, the fabric %q", name, said, pair)
		}
	}
	for name := range rows {
		if names[name] == nil {
			t.Errorf("docs/dev/opensm.md speaks of %s, which no port has", name)
		}
	}
}
