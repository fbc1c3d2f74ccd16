package ibsimtest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// tenancy is who is in which partition, as a partitions.conf and as sets.
type tenancy struct {
	policy string
	keys   map[ib.PortGUID]map[ib.PKeyBase]bool // full or not
	ports  []ib.PortGUID                        // of CAs, in the order of the topology
	names  []string                             // of their nodes
	// switches are the LIDs of switches, once a manager has given them.
	switches map[string]bool
}

// tenants puts the CAs of a fabric into partitions by turns: the first is the
// manager's and in none, the last of each partition is a limited member, and one
// is in two.
func tenants(l *topology.Netlist, n int) *tenancy {
	y := &tenancy{keys: map[ib.PortGUID]map[ib.PKeyBase]bool{}}
	for _, node := range l.Nodes {
		if node.Type == ib.NodeCA {
			y.ports, y.names = append(y.ports, node.Ports[1].GUID), append(y.names, node.ID)
		}
		port := node.Ports[min(1, len(node.Ports)-1)].GUID
		if node.Type == ib.NodeSwitch {
			port = ib.PortGUID(node.GUID)
		}
		y.keys[port] = map[ib.PKeyBase]bool{ib.PKeyBaseDefault: false}
	}
	y.keys[y.ports[0]][ib.PKeyBaseDefault] = true
	text := &strings.Builder{}
	fmt.Fprintln(text, "Default=0x7fff,ipoib : ALL=limited, SELF=full;")
	for t := range n {
		base := ib.PKeyBase(0x10 * (t + 1))
		var members []string
		for i := 1 + t; i < len(y.ports); i += n {
			full := i+n < len(y.ports)
			y.keys[y.ports[i]][base] = full
			members = append(members, fmt.Sprintf("%s=%s", y.ports[i], map[bool]string{true: "full", false: "limited"}[full]))
		}
		if t > 0 { // the first of the first partition is in every other too
			y.keys[y.ports[1]][base] = true
			members = append(members, fmt.Sprintf("%s=full", y.ports[1]))
		}
		fmt.Fprintf(text, "T%d=%#x,ipoib : %s;\n", t, uint16(base), strings.Join(members, ", "))
	}
	y.policy = text.String()
	return y
}

// field finds a field of a record as saquery prints it.
func field(record, name string) string {
	for line := range strings.Lines(record) {
		line = strings.TrimSpace(line)
		if len(line) < len(name) || !strings.EqualFold(line[:len(name)], name) {
			continue
		}
		if rest := strings.TrimLeft(line[len(name):], ".:"); len(rest) < len(line)-len(name) {
			value, _, _ := strings.Cut(rest, " ")
			return value
		}
	}
	return ""
}

// asked is one query of one host, and a record that one of the two gave.
type asked struct {
	*tenancy
	host   ib.PortGUID
	query  string
	record string
}

// pathEnds are the ends of a PathRecord and the partition of its key.
func (a *asked) pathEnds() (from, to ib.PortGUID, base ib.PKeyBase, ok bool) {
	if !strings.Contains(a.record, "num_path_revers") {
		return
	}
	s, err1 := ib.ParseGID(field(a.record, "sgid"))
	d, err2 := ib.ParseGID(field(a.record, "dgid"))
	var key uint16
	_, err3 := fmt.Sscanf(field(a.record, "pkey"), "0x%x", &key)
	return s.PortGUID(), d.PortGUID(), ib.PKey(key).Base(), err1 == nil && err2 == nil && err3 == nil
}

// isOthers reports whether a path is between two others.
func (a *asked) isOthers() bool {
	from, to, _, ok := a.pathEnds()
	return ok && from != a.host && to != a.host
}

// isForeign reports whether a path is between two others, with a key that the
// asker does not have.
func (a *asked) isForeign() bool {
	_, _, base, _ := a.pathEnds()
	_, has := a.keys[a.host][base]
	return a.isOthers() && !has
}

// wanted is the key that a query for paths names, given that of a record.
func (a *asked) wanted() (key ib.PKey) {
	if _, after, ok := strings.Cut(a.query, "--pkey "); ok && strings.HasSuffix(a.query, "PR") {
		fmt.Sscanf(after, "0x%x", (*uint16)(&key))
	}
	return key
}

func (a *asked) given() (key ib.PKey) {
	fmt.Sscanf(field(a.record, "pkey"), "0x%x", (*uint16)(&key))
	return key
}

// isSwitchTable reports whether a record is of the P_Key table of a switch port.
func (a *asked) isSwitchTable() bool {
	return strings.Contains(a.record, "PKey Table") && a.switches[field(a.record, "LID")]
}

func (a *asked) sharesAForeignKey() bool {
	from, to, _, ok := a.pathEnds()
	for base, full := range a.keys[from] {
		if other, both := a.keys[to][base]; ok && both && (full || other) {
			if _, has := a.keys[a.host][base]; !has {
				return true
			}
		}
	}
	return false
}

// differences lists where the two answer differently, with the reason. Every record
// that only one of them gives has to be explained by one of these, and each of
// these has to be seen.
var differences = []struct {
	name   string // as in docs/dev/opensm.md
	theirs func(*asked) bool
	ours   func(*asked) bool
}{
	{"PortInfoRecord, LinkRecord of switches by a tenant",
		func(a *asked) bool {
			return a.host != a.ports[0] && (strings.Contains(a.record, "PortInfo dump") || strings.Contains(a.record, "FromLID"))
		}, nil},
	{"PathRecord between two others, with a key that the asker has not",
		(*asked).isForeign, func(a *asked) bool { return a.isOthers() && !a.isForeign() && a.sharesAForeignKey() }},
	{"rate of a path to a switch",
		func(a *asked) bool {
			return strings.Contains(a.record, "num_path_revers") && strings.Contains(a.record, "fe80::20:") && field(a.record, "rate") == "0x82"
		},
		func(a *asked) bool {
			return strings.Contains(a.record, "num_path_revers") && strings.Contains(a.record, "fe80::20:") && field(a.record, "rate") != "0x82"
		}},
	{"PathRecord with a key in another membership than the source's",
		func(a *asked) bool { return a.wanted() != 0 && a.wanted() == a.given() },
		func(a *asked) bool { return a.wanted() != a.given() && a.wanted().Base() == a.given().Base() },
	},
	{"PathRecord with an SL that is not the partition's",
		func(a *asked) bool { return strings.Contains(a.query, "--sl 1 ") }, nil},
	{"PathRecord with a ServiceID",
		func(a *asked) bool {
			return strings.Contains(a.query, "--service_id") && strings.HasSuffix(field(a.record, "service_id"), "0")
		},
		func(a *asked) bool {
			return strings.Contains(a.query, "--service_id") && strings.HasSuffix(field(a.record, "service_id"), "1")
		}},
	{"P_KeyTableRecord without key",
		func(a *asked) bool { return strings.HasPrefix(a.query, "PKTR") && strings.Contains(a.record, "0x0200") },
		func(a *asked) bool { return strings.HasPrefix(a.query, "PKTR") && strings.Contains(a.record, "0x0700") }},
	{"P_KeyTableRecord of switch ports", (*asked).isSwitchTable, (*asked).isSwitchTable},
	{"PortInfoRecord of a port without a link", nil,
		func(a *asked) bool {
			return strings.Contains(a.record, "PortInfo dump") && field(a.record, "LinkState") == "Down"
		}},
	{"wrong SA_Key",
		func(a *asked) bool {
			return strings.Contains(a.query, "--smkey 0x99") && strings.Contains(a.record, "timed out")
		},
		func(a *asked) bool {
			return strings.Contains(a.query, "--smkey 0x99") && strings.Contains(a.record, "0x0700")
		}},
	{"SLtoVLMappingTableRecord, VLArbitrationTableRecord",
		func(a *asked) bool { return strings.Contains(a.record, "SL:") || strings.Contains(a.record, "Weight:") }, nil},
	{"MCMemberRecord by JoinState",
		func(a *asked) bool {
			return strings.HasPrefix(a.query, "-J 1") && field(a.record, "JoinState") == "0x0"
		}, nil},
}

// comparedQueries are put to both by every host; lids are those of the host and of
// another, of one partition.
func comparedQueries(y *tenancy, short bool, own, other, sw int) [][]string {
	lid, to, at := fmt.Sprint(own), fmt.Sprint(other), fmt.Sprint(sw)
	gid := func(i int) string { return ib.MakeGID(ib.DefaultGIDPrefix, y.ports[i]).String() }
	pair := []string{"--slid", lid, "--dlid", to}
	all := [][]string{
		{"CPI"}, {"NR"}, {"PIR"}, {"LR"}, {"PR"}, {"MCMR"}, {"GIR"}, {"SWIR"}, {"SMIR"}, {"SR"}, {"IIR"}, {"SL2VL", lid}, {"VLAR", lid},
		{"PKTR"}, {"LFTR", at}, {"MFTR", "0xc000"}, {"--smkey", "1", "PKTR"}, {"--smkey", "0x99", "NR"},
		append(slices.Clone(pair), "PR"), append(slices.Clone(pair), "--pkey", "0x10", "PR"), append(slices.Clone(pair), "--service_id", "1", "PR"),
		{"-J", "1", "MCMR"}, append(slices.Clone(pair), "--sl", "1", "PR"),
	}
	if short {
		return all
	}
	return append(all, [][]string{
		{"NR", lid}, {"NR", to}, {"PIR", lid}, {"PIR", to}, {"PIR", at + "/1"}, {"SL2VL"}, {"VLAR"}, {"PKTR", lid}, {"--smkey", "1", "PKTR", lid}, {"--smkey", "1", "PKTR", to},
		{"LR", at}, {"LR", at, at}, {"LFTR"}, {"LFTR", at + "/0"}, {"MFTR"}, {"GIR", lid}, {"GIR", to + "/0"}, {"SWIR", at}, {"SMIR", lid},
		{"-p"}, {"-L", y.names[1]}, {"-l", y.names[1]}, {"-G", y.names[1]}, {"-O", to}, {"-U", y.ports[1].String()}, {"-s"}, {"-g"}, {"-m"}, {"-x"}, {"-c"}, {"-S"}, {"-I"}, {"-D"},
		{"--src-to-dst", lid + ":" + to}, {"--src-to-dst", y.names[0] + ":" + y.names[1]}, {"--sgid-to-dgid", gid(0) + "-" + gid(1)},
		{"--slid", lid, "PR"}, {"--dlid", to, "PR"}, {"--sgid", gid(1), "PR"}, {"--dgid", gid(1), "PR"},
		append(slices.Clone(pair), "--pkey", "0x8010", "PR"), append(slices.Clone(pair), "--pkey", "0x7fff", "PR"), append(slices.Clone(pair), "-r", "1", "-n", "1", "PR"),
		append(slices.Clone(pair), "--sl", "0", "PR"), append(slices.Clone(pair), "--mtu", "0x84", "PR"), append(slices.Clone(pair), "--mtu", "0x04", "PR"),
		append(slices.Clone(pair), "--rate", "0x42", "PR"), append(slices.Clone(pair), "-Q", "0", "PR"), append(slices.Clone(pair), "-T", "0", "PR"), append(slices.Clone(pair), "-F", "0", "PR"),
		append(slices.Clone(pair), "-H", "0", "PR"), append(slices.Clone(pair), "--pkt_lifetime", "0x12", "PR"),
		{"--mgid", "ff12:401b:8010::ffff:ffff", "MCMR"}, {"--pkey", "0x8010", "MCMR"}, {"-q", "0xb1b", "MCMR"}, {"--scope", "2", "MCMR"}, {"--scope", "5", "MCMR"},
		{"-X", "0", "MCMR"}, {"--sl", "0", "MCMR"}, {"--mtu", "0x84", "MCMR"}, {"--rate", "0x83", "MCMR"}, {"-T", "0", "MCMR"}, {"-F", "0", "MCMR"}, {"-H", "0", "MCMR"},
		{"--gid", gid(1), "MCMR"},
	}...)
}

// pathsOfAll is up to how many hosts all paths, and all mappings, are asked for
// at once: an answer is a single write to the device, and those of the simulator
// take 1 MiB.
const pathsOfAll = 64

// compareWithOpenSM puts queries to OpenSM and, after it has gone, to ibwarden, which
// keeps its LIDs, on one fabric with one policy, and holds the differences
// against the list.
func compareWithOpenSM(t *testing.T, spec string, partitions int, short bool, hosts []int, seen []bool) {
	l := topologyOf(t, spec)
	y := tenants(l, partitions)
	x := expose(t, l)
	manager := y.names[0]
	sm := x.openSM(manager, y.policy)
	lids := x.lids(manager)
	lidOf := func(i int) int { return lids[y.ports[i].String()] }
	var aSwitch int
	y.switches = map[string]bool{}
	for _, n := range l.Nodes {
		if lid := lids[ib.PortGUID(n.GUID).String()]; n.Type == ib.NodeSwitch && lid != 0 {
			aSwitch = lid
			y.switches[fmt.Sprint(lid)] = true
		}
	}
	queries, theirs := map[int][][]string{}, map[int][]string{}
	for _, i := range hosts {
		queries[i] = comparedQueries(y, short, lidOf(i), lidOf(1+(i+partitions-1)%partitions+partitions), aSwitch)
		if len(y.ports) > pathsOfAll {
			queries[i] = slices.DeleteFunc(queries[i], func(q []string) bool {
				return len(q) == 1 && (q[0] == "PR" || q[0] == "-p" || q[0] == "SL2VL")
			})
		}
		theirs[i] = x.saquery(y.names[i], queries[i])
	}
	sm.stop()
	w := x.warden(manager, y.policy, "--sa-key", "1", "--profile", "basic")
	defer w.stop()
	same, differ := 0, 0
	for _, i := range hosts {
		for n, answer := range x.saquery(y.names[i], queries[i]) {
			a := asked{tenancy: y, host: y.ports[i], query: strings.Join(queries[i][n], " ")}
			want, got := normal(records(theirs[i][n])), normal(records(answer))
			only := without(want, got)
			same += len(want) - len(only)
			judge := func(only, others []string, ours bool) {
				for _, record := range only {
					differ++
					a.record = record
					if k := explain(&a, ours); k >= 0 {
						seen[k] = true
						continue
					}
					t.Errorf("saquery %s as %s: only %s says\n%s\nof the other's, the nearest lacks\n%s", a.query, y.names[i],
						map[bool]string{true: "ibwarden", false: "OpenSM"}[ours], record, strings.Join(nearest(record, others), "\n"))
				}
			}
			judge(only, got, false)
			judge(without(got, want), want, true)
		}
	}
	t.Logf("%d records the same, %d of one only", same, differ)
}

// nearest is what a record has that the one most like it in a list lacks.
func nearest(record string, list []string) []string {
	least := strings.Split(record, "\n")
	for _, other := range list {
		if lacks := without(strings.Split(record, "\n"), strings.Split(other, "\n")); len(lacks) < len(least) {
			least = lacks
		}
	}
	return least
}

// explain is the difference that a record belongs to, or -1.
func explain(a *asked, ours bool) int {
	for k, d := range differences {
		of := d.theirs
		if ours {
			of = d.ours
		}
		if of != nil && of(a) {
			return k
		}
	}
	return -1
}

// chosen are the names of fields with what each manager chooses: multicast LIDs;
// whether switches enforce, which OpenSM was told not to do, and filter raw packets; what it says of its
// own class beside the records; and the port by which its Get came to a switch.
var chosen = []string{"mlid", "partenforce", "filterraw", "capability mask", "redirect qp", "redirect qkey", "trap qkey", "localport:"}

// portNumber is the exit of a LID; each routes its own way.
var portNumber = regexp.MustCompile(`(?m)^(\s*\d+\t)(?:\d|\d\d|1\d\d|2[0-4]\d|25[0-4])$`)

func normal(list []string) []string {
	out := make([]string, 0, len(list))
	for _, r := range list {
		if strings.Contains(r, "Port Number") {
			r = portNumber.ReplaceAllString(r, "${1}routed")
		}
		isKeys := strings.Contains(r, "PKey Table")
		var kept strings.Builder
		for line := range strings.Lines(r) {
			name := strings.ToLower(strings.TrimSpace(line))
			switch {
			case slices.ContainsFunc(chosen, func(c string) bool { return strings.HasPrefix(name, c) }):
			case isKeys && strings.HasPrefix(name, "block"):
				kept.WriteString(keyBlock(name))
			default:
				kept.WriteString(line)
			}
		}
		out = append(out, strings.TrimSpace(kept.String()))
	}
	slices.Sort(out)
	return out
}

// keyBlock is the number of a block of a P_Key table, which OpenSM writes in the
// order of its own machine.
func keyBlock(line string) string {
	var n int
	fmt.Sscan(strings.TrimLeft(line, "block."), &n)
	if n >= 256 {
		n >>= 8
	}
	return fmt.Sprintln("Block", n)
}

// lids are the LIDs of end ports by port GUID, from the NodeRecords that the
// manager's host is shown.
func (x *exposed) lids(manager string) map[string]int {
	x.Helper()
	out := map[string]int{}
	for _, r := range records(x.saquery(manager, [][]string{{"NR"}})[0]) {
		var lid int
		fmt.Sscan(field(r, "lid"), &lid)
		var guid uint64
		fmt.Sscanf(field(r, "port_guid"), "0x%x", &guid)
		out[ib.PortGUID(guid).String()] = lid
	}
	if len(out) == 0 {
		x.Fatal("no NodeRecords")
	}
	return out
}

// TestSaqueryInExec: every record in full, on fabrics of 16 hosts (a share of the
// queries, by two of them) and, in long runs, of 16 and 648 by all kinds of host.
func TestSaqueryInExec(t *testing.T) {
	need.Long(t, "every query of saquery")
	seen := make([]bool, len(differences))
	if !need.Soak() {
		compareWithOpenSM(t, "fattree,radix=6,levels=2,hosts=16", 3, true, []int{0, 4}, seen)
	} else {
		t.Run("16", func(t *testing.T) {
			compareWithOpenSM(t, "fattree,radix=6,levels=2,hosts=16", 3, false, []int{0, 1, 4, 16 - 1}, seen)
		})
		t.Run("648", func(t *testing.T) {
			compareWithOpenSM(t, "fattree,radix=36,levels=2", 8, false, []int{0, 1, 10, 648 - 1}, seen)
		})
	}
	page, err := os.ReadFile("../../docs/dev/opensm.md")
	if err != nil {
		t.Fatal(err)
	}
	for k := range differences {
		if !seen[k] && !t.Skipped() {
			t.Errorf("the difference %q was not seen: is it one still?", differences[k].name)
		}
		if !strings.Contains(string(page), "\n| "+differences[k].name+" |") {
			t.Errorf("docs/dev/opensm.md does not have the difference %q", differences[k].name)
		}
	}
}
