package takeovertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Tables of ibsim's devices, on which the examples were first seen.
const (
	hostCap     = 64
	portZeroCap = 8
)

// ibsims gives devices the tables of ibsim's.
func ibsims(n *topology.Node, c *sma.Config) {
	c.PartitionCap = hostCap
	if n.Type == ib.NodeSwitch {
		c.PartitionCap = portZeroCap
	}
}

// example is a configuration of OpenSM, on the topology of testdata/five.net.
type example struct {
	name string
	// files are the partitions.conf that OpenSM reads one after the other; none for its
	// default configuration.
	files []string
	// ours is the policy of ibwarden, where it is another than the last of files, and flags
	// what it is told.
	ours  string
	flags []string
	lines string // of OpenSM's configuration
	// text is that of the only file, where it is not of testdata.
	text string
	// tables are those of hosts, by index, as OpenSM writes them, where they are not 7fff; and
	// managed those that have another key when ibwarden at Hca5 manages.
	tables  map[string]string
	managed map[string]string
	// refused is what ibwarden says of a file that it does not take, and that OpenSM takes for
	// something else than what is written, or carries out in part.
	refused string
	// more are further kinds of settings that ibwarden changes, once those of the first
	// takeover only, and stays what OpenSM does not change back.
	more, once, stays []string
}

// file is the text of the i-th file.
func (e *example) file(t *testing.T, i int) string {
	t.Helper()
	if e.text != "" || len(e.files) == 0 {
		return e.text
	}
	return testdata(t, e.files[i])
}

// self is what the keyword SELF changes when the manager is at Hca5 and not at Hca1.
var self = map[string]string{"Hca1": "7fff", "Hca5": "ffff"}

// examples are those of OpenSM's behaviour as it was seen, by their numbers.
var examples = []example{
	{name: "1, OpenSM's default configuration", ours: "full.yaml", tables: all("ffff")},
	{name: "2", files: []string{"02.conf"}, tables: map[string]string{"Hca1": "ffff", "Hca2": "7fff 8010", "Hca3": "7fff 0010", "Hca4": "7fff 0010"}, managed: self},
	{name: "3", files: []string{"03.conf"}, tables: map[string]string{
		"Hca1": "ffff 9001 8020", "Hca2": "ffff 9001 8020", "Hca3": "ffff 9001 0020", "Hca4": "ffff 9001", "Hca5": "ffff 9001",
	}, managed: map[string]string{"Hca1": "ffff 9001"}},
	{name: "4", files: []string{"04.conf"}, tables: map[string]string{"Hca1": "ffff", "Hca2": "7fff 8001 8002", "Hca3": "7fff 8001", "Hca4": "7fff 8001 0003"},
		refused: "0x0001"},
	{name: "4, with the numbers that OpenSM gives", files: []string{"04.conf"}, ours: "04-stated.conf",
		tables: map[string]string{"Hca1": "ffff", "Hca2": "7fff 8001 8002", "Hca3": "7fff 8001", "Hca4": "7fff 8001 0003"}, managed: self},
	{name: "5", files: []string{"05.conf"}, tables: map[string]string{"Hca1": "ffff", "Hca2": "8033 7fff", "Hca3": "0033 7fff"}, managed: self},
	{name: "6", files: []string{"06.conf"}, tables: map[string]string{"Hca1": "ffff", "Hca2": "8020 8010 7fff"}, refused: "index 0 is claimed by"},
	{name: "7", files: []string{"07.conf"}, tables: map[string]string{"Hca1": "ffff", "Hca2": "7fff 8044", "Hca3": "7fff 8044"}, managed: self},
	{name: "8", files: []string{"08.conf"}, lines: "allow_both_pkeys TRUE\n", flags: []string{"--allow-both"}, tables: map[string]string{
		"Hca1": "ffff", "Hca2": "0000 0044 8044 7fff", "Hca3": "0000 0044 8044 7fff", "Hca4": "0000 0044 7fff", "Hca5": "0000 7fff",
	}, managed: map[string]string{"Hca1": "7fff", "Hca2": "7fff 0044 8044", "Hca3": "7fff 0044 8044", "Hca4": "7fff 0044", "Hca5": "ffff"},
		once:  []string{"switch's own port: P_KeyTable"},
		stays: []string{"host: P_KeyTable", "switch port to a host: P_KeyTable", "switch's own port: P_KeyTable"}},
	{name: "9", files: []string{"09.conf"}, tables: all("ffff"), refused: "0xZZZ"},
	{name: "10", files: []string{"10.conf"}, tables: map[string]string{
		"Hca1": "ffff 8056", "Hca2": "ffff 0055 8056", "Hca3": "7fff 0056", "Hca4": "7fff 8056", "Hca5": "7fff 8056",
	}, managed: map[string]string{"Hca1": "7fff 8056", "Hca5": "ffff 8056"}},
	{name: "11, a table with a hole", files: []string{"11-1.conf", "11-2.conf", "11-3.conf"},
		tables: map[string]string{"Hca1": "ffff", "Hca2": "7fff 8010 0000 8030 8005"}, managed: self},
	{name: "12", files: []string{"12.conf"}, tables: map[string]string{"Hca1": "ffff", "Hca2": overfull()}, managed: self,
		more: []string{"switch port to a host: PartitionEnforcementInbound", "switch port to a host: PartitionEnforcementOutbound"}},
	{name: "13", files: []string{"13.conf"}, tables: map[string]string{"Hca1": "ffff"}, managed: self},
	{name: "both managers named", files: []string{"managers.conf"}, tables: map[string]string{
		"Hca1": "ffff", "Hca2": "7fff 8010 8030", "Hca3": "7fff 0010 8020 0030", "Hca4": "7fff 8020 0030", "Hca5": "ffff",
	}},
}

// all is the same table for all hosts.
func all(table string) map[string]string {
	return map[string]string{"Hca1": table, "Hca2": table, "Hca3": table, "Hca4": table, "Hca5": table}
}

// overfull is the table of 70 partitions on a port that holds 64: the default partition and
// the first 63 by the number with its bytes changed for each other, which here is by number.
func overfull() string {
	words := []string{"7fff"}
	for i := range hostCap - 1 {
		words = append(words, fmt.Sprintf("%04x", 0x8100+i))
	}
	return strings.Join(words, " ")
}

// table reads "7fff 8010".
func table(t *testing.T, text string) (out []ib.PKey) {
	t.Helper()
	for _, w := range strings.Fields(text) {
		n, err := strconv.ParseUint(w, 16, 16)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, ib.PKey(n))
	}
	return out
}

// of is the tables of all hosts, with those of more in their place.
func (e *example) of(t *testing.T, all []*topology.Node, more map[string]string) map[string][]ib.PKey {
	t.Helper()
	out := map[string][]ib.PKey{}
	for _, h := range all {
		text := e.tables[h.ID]
		if text == "" {
			text = "7fff"
		}
		if more[h.ID] != "" {
			text = more[h.ID]
		}
		out[h.ID] = table(t, text)
	}
	return out
}

func five(t *testing.T) *topology.Netlist {
	t.Helper()
	text := testdata(t, "five.net")
	l, _, err := topology.Read([]byte(text), "five.net", nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
