package look

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"encoding/xml"

	"github.com/goccy/go-yaml"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/test/need"
)

// inFormat is a fabric in a format.
func inFormat(t *testing.T, f *observed.Fabric, format string) string {
	t.Helper()
	var out strings.Builder
	if err := formats[format](&out, f, time.Time{}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// pods is a fabric of pods, each with leaves and switches above them, and switches above all.
func pods(n int) *subnettest.Builder {
	b := subnettest.New()
	var tops []*observed.Node
	for i := range 2 {
		tops = append(tops, b.Switch(2*n, fmt.Sprintf("core-%d", i)))
	}
	for p := range n {
		var middle []*observed.Node
		for i := range 2 {
			m := b.Switch(4, fmt.Sprintf("pod%d-mid-%d", p, i))
			middle = append(middle, m)
			for _, top := range tops {
				subnettest.Join(m, top)
			}
		}
		for i := range 2 {
			leaf := b.Switch(4, fmt.Sprintf("MF0;pod%d-leaf%d:MQM9700/U1", p, i))
			for _, m := range middle {
				subnettest.Join(leaf, m)
			}
			for h := range 2 {
				b.Host(leaf, fmt.Sprintf("n%d mlx5_0", 4*p+2*i+h+8))
			}
		}
	}
	return b
}

func TestSlurmFormat(t *testing.T) {
	want := `SwitchName=pod0-leaf0 Nodes=n8,n9
SwitchName=pod0-leaf1 Nodes=n10,n11
SwitchName=pod1-leaf0 Nodes=n12,n13
SwitchName=pod1-leaf1 Nodes=n14,n15
SwitchName=pod2-leaf0 Nodes=n16,n17
SwitchName=pod2-leaf1 Nodes=n18,n19
SwitchName=pod0 Switches=pod0-leaf0,pod0-leaf1
SwitchName=pod1 Switches=pod1-leaf0,pod1-leaf1
SwitchName=pod2 Switches=pod2-leaf0,pod2-leaf1
SwitchName=_fabric Switches=pod0,pod1,pod2
`
	if got := inFormat(t, pods(3).Fabric, "slurm"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// rails are two: each host has an adapter in each, and a leaf of one rail has the hosts of a leaf of the
// other. A host is in one leaf.
func rails() *subnettest.Builder {
	b := subnettest.New()
	for rail := range 2 {
		spine := b.Switch(4, fmt.Sprintf("rail%d-spine", rail))
		for i := range 2 {
			leaf := b.Switch(4, fmt.Sprintf("rail%d-leaf%d", rail, i))
			subnettest.Join(leaf, spine)
			for h := range 2 {
				b.Host(leaf, fmt.Sprintf("gpu%d mlx5_%d", 2*i+h, rail))
			}
		}
	}
	return b
}

func TestRailsAreOneLeaf(t *testing.T) {
	want := "SwitchName=rail0-leaf0 Nodes=gpu0,gpu1\nSwitchName=rail0-leaf1 Nodes=gpu2,gpu3\n" +
		"SwitchName=_fabric Switches=rail0-leaf0,rail0-leaf1\n"
	if got := inFormat(t, rails().Fabric, "slurm"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// A host that takes the name of one at another leaf joins no leaves, and one adapter with cables to two
// leaves is at one of them.
func TestNameOfAnotherLeaf(t *testing.T) {
	b := subnettest.New()
	one, two := b.Switch(8, "one"), b.Switch(8, "two")
	subnettest.Join(one, two)
	for i := range 4 {
		b.Host(one, fmt.Sprintf("a%d mlx5_0", i))
		b.Host(two, fmt.Sprintf("b%d mlx5_0", i))
	}
	b.Host(two, "a0 mlx5_1")
	want := "# not listed: a0: its adapters are at leaves that have few hosts in common\n" +
		"SwitchName=one Nodes=a1,a2,a3\nSwitchName=two Nodes=b0,b1,b2,b3\nSwitchName=_fabric Switches=one,two\n"
	if got := inFormat(t, b.Fabric, "slurm"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	join := new(tree).rails(3, map[string][]int{"a": {0, 2}, "b": {0}, "c": {0}, "d": {2}}, map[string]int{"a": 1})
	if join.of(2) != 2 {
		t.Error("an adapter with two cables joins leaves")
	}
}

// What a device says of itself makes no line, takes no name of a switch, and puts no other host into
// its leaf.
func TestHostileDescriptions(t *testing.T) {
	b := subnettest.New()
	one, two := b.Switch(16, "leaf"), b.Switch(16, "leaf")
	subnettest.Join(one, two)
	b.Host(one, "good mlx5_0")
	b.Host(two, "victim mlx5_0")
	for _, text := range []string{
		"victim mlx5_0", "a\nSwitchName=x Nodes=good", "a,b", "x[1-9]", "", "-a", "a\"b", "a<b>&", "x\x00y", "ä", strings.Repeat("a", 64), "#",
	} {
		b.Host(one, text)
	}
	b.Switch(2, "x\nSwitchName=evil Nodes=good")
	text := inFormat(t, b.Fabric, "slurm")
	var lines []string
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		if !strings.HasPrefix(l, "# not listed: 0x") {
			lines = append(lines, l)
		}
	}
	if want := "SwitchName=leaf Nodes=good"; !slices.Equal(lines, []string{want}) {
		t.Errorf("want %q alone:\n%s", want, text)
	}
	if n := strings.Count(text, "# not listed"); n != 13 {
		t.Errorf("%d are not listed:\n%s", n, text)
	}
	things := len(b.Fabric.Nodes)
	cables(b.Fabric, func(*observed.Port, *observed.Port) { things++ })
	for format, around := range map[string]int{"dot": 2, "graphml": 10} { // lines that are no node and no cable
		if text := inFormat(t, b.Fabric, format); strings.Count(text, "\n") != things+around {
			t.Errorf("%s: a description makes a line:\n%s", format, text)
		}
	}
	if err := xml.Unmarshal([]byte(inFormat(t, b.Fabric, "graphml")), new(struct{ XMLName xml.Name })); err != nil {
		t.Error(err)
	}
}

// TestEqualNames: two switches with one name have different ones in the tree.
func TestEqualNames(t *testing.T) {
	b := subnettest.New()
	spine := b.Switch(8, "spine")
	for i := range 3 {
		leaf := b.Switch(4, "Infiniscale-IV Mellanox")
		subnettest.Join(leaf, spine)
		b.Host(leaf, fmt.Sprintf("n%d mlx5_0", i))
	}
	tree := treeOf(b.Fabric)
	seen := map[string]bool{}
	for _, l := range tree.leaves {
		seen[l.name] = true
	}
	if len(seen) != 3 || len(tree.left) > 0 {
		t.Errorf("%+v", tree)
	}
}

func TestYAMLFormats(t *testing.T) {
	f := pods(3).Fabric
	var slurm []struct {
		Topology string
		Default  bool `yaml:"cluster_default"`
		Tree     struct {
			Switches []struct{ Switch, Nodes, Children string }
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(inFormat(t, f, "slurm-yaml")), &slurm, yaml.DisallowUnknownField()); err != nil {
		t.Fatal(err)
	}
	if s := slurm[0].Tree.Switches; len(slurm) != 1 || !slurm[0].Default || len(s) != 10 || s[0].Nodes != "n8,n9" || s[9].Children != "pod0,pod1,pod2" {
		t.Errorf("%+v", slurm)
	}
	dec := yaml.NewDecoder(strings.NewReader(inFormat(t, f, "kubernetes")))
	n := 0
	for ; ; n++ {
		var node struct {
			APIVersion, Kind string
			Metadata         struct {
				Name   string
				Labels map[string]string
			}
		}
		if dec.Decode(&node) != nil {
			break
		}
		if node.Kind == "" && n == 0 {
			n--
			continue // what is before the first document
		}
		if l := node.Metadata.Labels; node.Kind != "Node" || l[nodeLabel+"leaf"] == "" || !strings.HasPrefix(l[nodeLabel+"leaf"], l[nodeLabel+"spine"]+"-") {
			t.Errorf("%+v", node)
		}
	}
	if n != 12 {
		t.Errorf("%d nodes", n)
	}
}

func TestGraphs(t *testing.T) {
	f := pods(2).Fabric
	links := 0
	cables(f, func(*observed.Port, *observed.Port) { links++ })
	if links != 2*(4+4+4) {
		t.Errorf("%d cables", links)
	}
	for format, line := range map[string]string{"dot": " -- ", "graphml": "<edge "} {
		if n := strings.Count(inFormat(t, f, format), line); n != links {
			t.Errorf("%s: %d cables", format, n)
		}
	}
	if n := len(f.Nodes); strings.Count(inFormat(t, f, "dot"), "shape=") != n || strings.Count(inFormat(t, f, "graphml"), "<node ") != n {
		t.Error("nodes are missing")
	}
}

// TestSlurmReadsIt has Debian's slurmctld read the file, and give the tree back.
func TestSlurmReadsIt(t *testing.T) {
	need.Long(t, "slurmctld starts")
	controller, scontrol := need.Program(t, "slurmctld"), need.Program(t, "scontrol")
	dir, text := t.TempDir(), inFormat(t, pods(3).Fabric, "slurm")
	host, err := os.Hostname()
	need.Need(t, err)
	me, err := user.Current()
	need.Need(t, err)
	conf := fmt.Sprintf(`ClusterName=test
SlurmctldHost=%s(127.0.0.1)
SlurmUser=%s
SlurmctldPort=%d
AuthType=auth/none
CredType=cred/none
StateSaveLocation=%s
SlurmctldPidFile=%[4]s/pid
ProctrackType=proctrack/pgid
SelectType=select/cons_tres
TopologyPlugin=topology/tree
NodeName=n[8-19] NodeAddr=127.0.0.1
PartitionName=all Nodes=ALL
`, host, me.Username, 20000+os.Getpid()%10000, dir)
	for name, text := range map[string]string{"slurm.conf": conf, "topology.conf": text} {
		need.Need(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	file := filepath.Join(dir, "slurm.conf")
	log, err := os.Create(filepath.Join(dir, "log"))
	need.Need(t, err)
	defer log.Close()
	c := exec.Command(controller, "-D", "-f", file)
	c.Stdout, c.Stderr = log, log
	c.Env = append(os.Environ(), "SLURM_CONF="+file)
	need.Need(t, c.Start())
	defer func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			out, _ := os.ReadFile(log.Name())
			t.Logf("%s", out)
		}
	}()
	var shown string
	need.Eventually(t, need.Patience, "slurmctld answers", func() bool {
		c := exec.Command(scontrol, "show", "topology")
		c.Env = append(os.Environ(), "SLURM_CONF="+file)
		out, err := c.Output()
		shown = string(out)
		return err == nil
	})
	for _, line := range []string{
		"SwitchName=pod0-leaf1 Level=0 LinkSpeed=1 Nodes=n[10-11]", "SwitchName=pod2 Level=1 LinkSpeed=1 Nodes=n[16-19] Switches=pod2-leaf[0-1]",
		"SwitchName=_fabric Level=2 LinkSpeed=1 Nodes=n[8-19] Switches=pod[0-2]",
	} {
		name, rest, _ := strings.Cut(line, " Level")
		i := strings.Index(shown, name+" ")
		if i < 0 {
			t.Errorf("no %s in\n%s", name, shown)
			continue
		}
		got, _, _ := strings.Cut(shown[i:], "\n")
		if level, _, _ := strings.Cut(rest, " Nodes"); !strings.Contains(got, "Level"+level) {
			t.Errorf("got  %s\nwant %s", got, line)
		}
	}
	if n := strings.Count(shown, "SwitchName="); n != strings.Count(text, "SwitchName=") {
		t.Errorf("%d switches:\n%s", n, shown)
	}
}

// TestSlurmYAML holds topology.yaml against topology.yaml(5) of Slurm 25.05: no other keys, the name
// first, names of 64 characters at most, each switch once, and one tree with each host once.
func TestSlurmYAML(t *testing.T) {
	for _, b := range []*subnettest.Builder{pods(3), rails()} {
		text := inFormat(t, b.Fabric, "slurm-yaml")
		if !strings.HasPrefix(text, "---\n- topology: ") {
			t.Fatalf("the name is not first:\n%s", text)
		}
		var all []struct {
			Topology string `yaml:"topology"`
			Default  bool   `yaml:"cluster_default"`
			Tree     struct {
				Switches []struct {
					Switch   string `yaml:"switch"`
					Children string `yaml:"children"`
					Nodes    string `yaml:"nodes"`
				} `yaml:"switches"`
			} `yaml:"tree"`
		}
		if err := yaml.NewDecoder(strings.NewReader(text), yaml.DisallowUnknownField()).Decode(&all); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		if len(all) != 1 || all[0].Topology == "" || !all[0].Default {
			t.Fatalf("want one topology, the default:\n%s", text)
		}
		above, hosts, tops := map[string]string{}, map[string]string{}, 0
		for _, s := range all[0].Tree.Switches {
			if s.Switch == "" || len(s.Switch) > 64 || (s.Children == "") == (s.Nodes == "") {
				t.Errorf("%+v", s)
			}
			for into, list := range map[*map[string]string]string{&above: s.Children, &hosts: s.Nodes} {
				for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
					if (*into)[name] != "" {
						t.Errorf("%s is below %s and %s", name, (*into)[name], s.Switch)
					}
					(*into)[name] = s.Switch
				}
			}
		}
		known := map[string]bool{}
		for _, s := range all[0].Tree.Switches {
			if known[s.Switch] {
				t.Errorf("%s is there twice", s.Switch)
			}
			if known[s.Switch] = true; above[s.Switch] == "" {
				tops++
			}
		}
		for name := range above {
			if !known[name] {
				t.Errorf("%s is not there", name)
			}
		}
		if tops != 1 || len(hosts) == 0 {
			t.Errorf("%d roots, %d hosts:\n%s", tops, len(hosts), text)
		}
	}
}
