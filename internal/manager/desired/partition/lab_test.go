package partition

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// lab is a small fabric: CAs Hca1 to Hca3 on Switch1, Hca4 and Hca5 on
// Switch2, each on the switch port of its number there; the subnet manager is
// on Hca1. Tables are as big as ibsim makes them, and enforcement, which ibsim
// has not, is complete.
type lab struct {
	ports []PortFacts
	ends  []policy.EndPort
	names map[ib.PortGUID]string
	keys  map[string]ib.PKeyBase
}

const (
	hca1 ib.PortGUID = 0x100001
	hca2 ib.PortGUID = 0x100004
	hca3 ib.PortGUID = 0x100007
	hca4 ib.PortGUID = 0x10000a
	hca5 ib.PortGUID = 0x10000d
	sw1  ib.PortGUID = 0x200000
	sw2  ib.PortGUID = 0x200001
)

// names of the lab's ports, as partitions.conf in the tests writes them.
var labNames = strings.NewReplacer("Hca1", "0x100001", "Hca2", "0x100004", "Hca3", "0x100007", "Hca4", "0x10000a", "Hca5", "0x10000d")

func newLab() *lab {
	l := &lab{names: map[ib.PortGUID]string{}}
	for i, guid := range []ib.PortGUID{hca1, hca2, hca3, hca4, hca5} {
		node := ib.NodeGUID(guid - 1)
		facing := &SwitchPortFacts{SwitchGUID: ib.NodeGUID(sw1), PortNum: ib.PortNum(i + 1), Cap: 64} // ibsim has tables there and no check
		if i >= 3 {
			facing.SwitchGUID, facing.PortNum = ib.NodeGUID(sw2), ib.PortNum(i-2)
		}
		l.add(fmt.Sprint("Hca", i+1), ib.NodeCA, PortFacts{PortGUID: guid, NodeGUID: node, PortNum: 1, Cap: 64, Facing: facing})
	}
	l.add("Switch1", ib.NodeSwitch, PortFacts{PortGUID: sw1, NodeGUID: ib.NodeGUID(sw1), Cap: 8})
	l.add("Switch2", ib.NodeSwitch, PortFacts{PortGUID: sw2, NodeGUID: ib.NodeGUID(sw2), Cap: 8})
	return l
}

func (l *lab) add(name string, kind ib.NodeType, port PortFacts) {
	port.Current = Table{ib.PKeyDefaultFull}
	l.ports = append(l.ports, port)
	l.ends = append(l.ends, policy.EndPort{PortGUID: port.PortGUID, NodeGUID: port.NodeGUID, PortNum: port.PortNum,
		Description: name, NodeType: kind, SM: port.PortGUID == hca1})
	l.names[port.PortGUID] = name
}

// resolve resolves a partitions.conf.
func (l *lab) resolve(t *testing.T, conf string, allowBoth bool) *policy.Resolution {
	t.Helper()
	p, err := policyfile.ReadConf([]byte(labNames.Replace(conf)), "partitions.conf", policyfile.Options{AllowBoth: allowBoth})
	if err != nil {
		t.Fatal(err)
	}
	if l.keys, err = policy.Allocate(p, l.keys); err != nil {
		t.Fatal(err)
	}
	r, err := p.Resolve(l.ends, l.keys)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// apply compiles a partitions.conf and puts the tables into the lab.
func (l *lab) apply(t *testing.T, conf string, allowBoth bool) Output {
	t.Helper()
	out, err := Compile(Input{Ports: l.ports, Resolution: l.resolve(t, conf, allowBoth)})
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range out.EndPorts {
		for i := range l.ports {
			if l.ports[i].PortGUID == end.PortGUID {
				l.ports[i].Current = end.Table
			}
		}
	}
	return out
}

// show prints a table as "7fff 8010 0 8030".
func show(table Table) string {
	words := make([]string, len(table))
	for i, k := range table {
		words[i] = fmt.Sprintf("%x", uint16(k))
		if k != 0 {
			words[i] = fmt.Sprintf("%04x", uint16(k))
		}
	}
	return strings.Join(words, " ")
}

// tables gives the table of every port of the output by its name in the lab;
// switch ports are Switch1.1 and so on.
func (l *lab) tables(out Output) map[string]string {
	tables := map[string]string{}
	for _, end := range out.EndPorts {
		tables[l.names[end.PortGUID]] = show(end.Table)
	}
	for _, port := range out.SwitchPorts {
		tables[fmt.Sprintf("%s.%d", l.names[ib.PortGUID(port.SwitchGUID)], port.PortNum)] = show(port.Table)
	}
	return tables
}
