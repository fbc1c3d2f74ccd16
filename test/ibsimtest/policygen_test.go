package ibsimtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// policyWriter makes a random partitions.conf for a fabric, valid for OpenSM
// and for ibwarden, that uses the grammar widely.
type policyWriter struct {
	*rand.Rand
	x          *reachable
	statements []statement // what the text means
	text       strings.Builder
	headers    map[uint16]string // flags of groups, the same in every definition of a partition
	groups     int               // mgid lines so far
}

// writePolicy returns the statements and their text. The text fits the
// fabric: no port gets more keys than its table holds, or two keys at index 0.
func writePolicy(r *rand.Rand, x *reachable) ([]statement, string) {
	w := &policyWriter{Rand: r, x: x, headers: map[uint16]string{}}
	w.comment()
	for definitions := 1 + w.IntN(10); definitions > 0; definitions-- {
		w.definition()
	}
	for len(w.statements) == 0 {
		w.definition()
	}
	return w.statements, w.text.String()
}

// definition adds one definition, if there is room for what it says.
func (w *policyWriter) definition() {
	s, title := w.title()
	defaultFull := w.IntN(3) == 0
	s.index0 = w.IntN(6) == 0
	for range 1 + w.IntN(6) {
		s.members = append(s.members, member{selector: w.selector(), full: w.IntN(2) == 0})
	}
	key := evaluate(w.statements, w.x).keyOf(s)
	with := append(slices.Clone(w.statements), s)
	meant := evaluate(with, w.x)
	for _, e := range w.x.ends {
		if len(meant.table(e)) > e.tableCap() || meant.claims(e) > 1 {
			return
		}
	}
	w.statements = with
	w.write(s, title, defaultFull, key)
}

// title chooses what a definition defines, and how it says so: a new
// partition or one that was there before, by name, by key or by both.
func (w *policyWriter) title() (statement, string) {
	if len(w.statements) > 0 && w.IntN(3) == 0 {
		again := w.statements[w.IntN(len(w.statements))]
		s := statement{name: again.name, key: again.key}
		switch {
		case again.key == 0 && again.name == "": // a new automatic one
		case again.key != 0 && w.IntN(3) == 0:
			s.name = "" // by its key alone
		case again.key != 0 && w.IntN(3) == 0:
			s.name = w.newName() // the first name stays
		case w.IntN(3) == 0 && again.name != "":
			s.key = 0 // by its name alone
		}
		return s, w.titleText(s)
	}
	s := statement{name: w.newName()}
	switch w.IntN(12) {
	case 0, 1, 2, 3:
	case 4:
		s.name = ""
	case 5:
		s.name, s.key = w.pick("Default", "Default", "", "everybody"), defaultKey
	case 6:
		s.name, s.key = "", w.newKey()
	case 7:
		if len(w.statements) > 0 { // another partition of the same name
			s.name = w.statements[w.IntN(len(w.statements))].name
		}
		s.key = w.newKey()
	default:
		s.key = w.newKey()
	}
	return s, w.titleText(s)
}

// newKey is a key that no automatic partition has, or will get from a lower
// number on.
func (w *policyWriter) newKey() uint16 {
	meant := evaluate(w.statements, w.x)
	low := uint16(1 + w.IntN(20))
	if meant.partitions[low] == nil && w.IntN(3) == 0 {
		return low
	}
	return uint16(0x20 + w.IntN(defaultKey-0x20))
}

func (w *policyWriter) newName() string {
	return w.pick("Storage", "tenant-a", "Tenant_B", "blue team", "x", "mgmt.2", "IPoIB", "full") + fmt.Sprint(w.IntN(100))
}

// titleText writes a definition up to its flags.
func (w *policyWriter) titleText(s statement) string {
	key := s.key
	if key != 0 && w.IntN(4) == 0 {
		key |= fullBit // it makes no difference
	}
	number := w.pick(fmt.Sprintf("0x%x", key), fmt.Sprintf("0x%04X", key), fmt.Sprint(key))
	switch {
	case s.key == 0 && w.IntN(8) == 0:
		return s.name + w.gap() + "=" + w.pick("0", "0x0", "0x8000")
	case s.key == 0:
		return s.name
	case s.name == "" && w.IntN(2) == 0:
		return number
	}
	return s.name + w.gap() + "=" + w.gap() + number
}

// selector is a port, a keyword, or somebody who is not there.
func (w *policyWriter) selector() string {
	switch w.IntN(10) {
	case 0, 1:
		return w.pick("ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "SELF")
	case 2:
		return w.pick("NONE", guidText(w.Uint64()|1<<63), guidText(uint64(w.x.nodes[w.IntN(len(w.x.nodes))].GUID)))
	}
	return guidText(w.x.ends[w.IntN(len(w.x.ends))].guid)
}

// write puts a definition down.
func (w *policyWriter) write(s statement, title string, defaultFull bool, key uint16) {
	w.text.WriteString(title)
	for _, flag := range w.flags(s, defaultFull, key) {
		w.text.WriteString(w.gap() + "," + w.gap() + flag)
	}
	w.text.WriteString(w.gap() + ":" + w.lineEnd())
	for i, m := range s.members {
		if i > 0 {
			w.text.WriteString(w.gap() + "," + w.lineEnd())
		}
		if w.IntN(12) == 0 {
			w.group(key)
		}
		w.text.WriteString(w.member(m, defaultFull))
	}
	w.text.WriteString(w.pick(";", " ;", ";", "\t; "))
	w.comment()
}

// flags are those of a definition. What they say of multicast groups makes no
// difference to keys, but has to agree wherever a partition is defined.
func (w *policyWriter) flags(s statement, defaultFull bool, key uint16) []string {
	var flags []string
	if defaultFull {
		flags = append(flags, w.pick("defmember", "d", "defm")+"="+w.pick("full", "f", "both"))
	} else if w.IntN(3) == 0 {
		flags = append(flags, w.pick("defmember", "de")+w.gap()+"="+w.gap()+w.pick("limited", "lim"))
	}
	if s.index0 {
		flags = append(flags, "indx0")
	}
	group, known := w.headers[key]
	if !known {
		group = w.pick("", "", "ipoib", "ip,mtu=4", "ipoib,mtu=5,rate=7", "mtu=3,rate=3", "rate=16,sl=2",
			"scope=2,Q_Key=0x1234", "ipoib,sl=1,TClass=3,FlowLabel=0x77", "ipoib,m=4,r=3")
		w.headers[key] = group
	}
	if group != "" {
		flags = append(flags, group)
	}
	w.Shuffle(len(flags), func(i, j int) { flags[i], flags[j] = flags[j], flags[i] })
	return flags
}

// group writes a multicast group, which takes the rest of its line.
func (w *policyWriter) group(key uint16) {
	if w.headers[key] != "" && w.headers[key] != "ipoib" {
		return
	}
	w.groups++
	fmt.Fprintf(&w.text, "mgid=%s%s\n", w.pick(
		fmt.Sprintf("ff12::%x", 0x100+w.groups),
		fmt.Sprintf("ff12:401b:%x::%x", key|fullBit, 0x100+w.groups),
		fmt.Sprintf("ff12:601b::%x", 0x100+w.groups)),
		w.pick("", ",sl=1", ",Q_Key=0x99", ",TClass=1,FlowLabel=7"))
}

func (w *policyWriter) member(m member, defaultFull bool) string {
	text := m.selector
	var guid uint64
	if n, _ := fmt.Sscanf(text, "0x%x", &guid); n == 1 {
		text = w.pick(text, fmt.Sprintf("0x%x", guid), fmt.Sprintf("0x%X", guid), fmt.Sprint(guid))
	} else if short := map[string]string{"SELF": "S", "NONE": "NO", "ALL_SWITCHES": "ALL_SW", "ALL_ROUTERS": "ALL_R"}[text]; short != "" {
		text = w.pick(text, text, short)
	}
	if m.full == defaultFull && w.IntN(2) == 0 {
		return text
	}
	membership := w.pick("limited", "limited", "l", "limit")
	if m.full {
		membership = w.pick("full", "full", "f", "ful", "both", "b")
	}
	return text + w.gap() + "=" + w.gap() + membership
}

// comment ends a line, and adds some of no meaning.
func (w *policyWriter) comment() {
	w.text.WriteString(w.pick("", "", "# a remark: with, all; marks = of the grammar") + "\n")
	w.text.WriteString(w.pick("", "", "", "\n", "  \t\n", "# A=0x5 : ALL=full ;\n"))
}

// gap is optional white space, lineEnd white space that may go to a new line.
func (w *policyWriter) gap() string { return w.pick("", "", " ", "\t", "  ") }

func (w *policyWriter) lineEnd() string {
	return w.pick("", " ", " ", "\n", "\n\t", " # more follows\n    ")
}

func (w *policyWriter) pick(words ...string) string { return words[w.IntN(len(words))] }
