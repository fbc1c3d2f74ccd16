package ibsimtest

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// statement is one definition of a partitions.conf, as far as it matters for
// keys. The generator makes statements and writes them down; readConf reads
// them back; evaluate says what they mean.
type statement struct {
	name    string
	key     uint16 // 0 for an automatic one
	index0  bool
	members []member
}

// member gives the ports that a selector selects a membership.
type member struct {
	selector string // a keyword, or a GUID as guidText writes it
	full     bool
}

func guidText(guid uint64) string { return fmt.Sprintf("0x%016x", guid) }

const (
	fullBit    = 0x8000
	defaultKey = 0x7fff
)

// meaning is what a policy comes to on a fabric.
type meaning struct {
	partitions map[uint16]*partition // by key without the membership bit
}

// partition is one partition and its members.
type partition struct {
	key     uint16
	name    string
	alike   bool // another partition has the same name, or it has none
	members map[*endPort]member
	index0  map[*endPort]bool
}

func (p *partition) count() (full, limited int) {
	for _, m := range p.members {
		if m.full {
			full++
		} else {
			limited++
		}
	}
	return full, limited
}

// order is OpenSM's order of keys on the usual hosts.
func order(key uint16) int { return int(bits.ReverseBytes16(key)) }

// evaluate says what the statements mean, as OpenSM has it: everybody is a
// limited member of the default partition and the manager's port a full one;
// an automatic key belongs to a name or is the lowest that is free; the last
// word on a port decides.
func evaluate(statements []statement, x *reachable) *meaning {
	m := &meaning{partitions: map[uint16]*partition{}}
	implied := m.partition(defaultKey, "Default")
	implied.add(x, member{selector: "ALL"}, false)
	implied.add(x, member{selector: "SELF", full: true}, false)
	for _, s := range statements {
		p := m.partition(m.keyOf(s), s.name)
		for _, each := range s.members {
			p.add(x, each, s.index0)
		}
	}
	return m
}

func (m *meaning) keyOf(s statement) uint16 {
	if s.key != 0 {
		return s.key
	}
	var best uint16
	for key, p := range m.partitions {
		if s.name != "" && p.name == s.name && (best == 0 || order(key) < order(best)) {
			best = key
		}
	}
	if best == 0 {
		for best = 1; m.partitions[best] != nil; best++ {
		}
	}
	return best
}

func (m *meaning) partition(key uint16, name string) *partition {
	p := m.partitions[key]
	if p == nil {
		p = &partition{key: key, name: name, alike: name == "", members: map[*endPort]member{}, index0: map[*endPort]bool{}}
		for _, other := range m.partitions {
			p.alike = p.alike || other.name == name
		}
		m.partitions[key] = p
	}
	return p
}

func (p *partition) add(x *reachable, m member, index0 bool) {
	for _, e := range x.ends {
		if !e.selected(m.selector, x.self) {
			continue
		}
		p.members[e] = m
		delete(p.index0, e)
		if index0 {
			p.index0[e] = true
		}
	}
}

func (e *endPort) selected(selector string, self *endPort) bool {
	switch selector {
	case "ALL":
		return true
	case "ALL_CAS":
		return e.node.Type == ib.NodeCA
	case "ALL_SWITCHES":
		return e.isSwitch()
	case "ALL_ROUTERS":
		return e.node.Type == ib.NodeRouter
	case "SELF":
		return e == self
	}
	return selector == guidText(e.guid)
}

// claims counts the partitions that want index 0 of the port's table.
func (m *meaning) claims(e *endPort) int {
	count := 0
	for _, p := range m.partitions {
		if p.index0[e] {
			count++
		}
	}
	return count
}

// table is the P_Key table that a port gets that had none before: the default
// key at index 0, or, when another key claims that, at the end.
func (m *meaning) table(e *endPort) []uint16 {
	var claimed, rest, standard []uint16
	for key, p := range m.partitions {
		each, in := p.members[e]
		if !in {
			continue
		}
		if each.full {
			key |= fullBit
		}
		switch {
		case p.index0[e]:
			claimed = append(claimed, key)
		case p.key == defaultKey:
			standard = append(standard, key)
		default:
			rest = append(rest, key)
		}
	}
	slices.SortFunc(rest, func(a, b uint16) int { return order(a&^fullBit) - order(b&^fullBit) })
	if len(claimed) > 0 {
		return slices.Concat(claimed, rest, standard)
	}
	return slices.Concat(standard, rest)
}

// errUnlike says that the reader does not know this form of a file.
var errUnlike = errors.New("not a partitions.conf that the model knows")

// readConf reads a partitions.conf strictly and naively: what it does not
// understand is errUnlike. Carriage returns and the length of lines do not
// matter, and neither does what flags say but defmember and indx0.
func readConf(text string) ([]statement, error) {
	var all []statement
	var open *statement
	defaultFull := false
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
			if open == nil {
				head, rest, ok := strings.Cut(line, ":")
				if !ok {
					return nil, fmt.Errorf("%w: %q", errUnlike, line)
				}
				s, full, err := readHead(head)
				if err != nil {
					return nil, err
				}
				open, defaultFull, line = &s, full, rest
			}
			items, rest, closed := strings.Cut(line, ";")
			if err := open.readMembers(items, defaultFull); err != nil {
				return nil, err
			}
			if line = rest; closed {
				all = append(all, *open)
				open = nil
			}
		}
	}
	if open != nil {
		all = append(all, *open)
	}
	return all, nil
}

// readHead reads a definition up to its colon.
func readHead(head string) (s statement, full bool, err error) {
	parts := strings.Split(head, ",")
	name, key, stated := strings.Cut(parts[0], "=")
	if s.name = strings.TrimSpace(name); !stated && s.name != "" && s.name[0] >= '0' && s.name[0] <= '9' {
		s.name, key, stated = "", s.name, true
	}
	if stated {
		v, err := strconv.ParseUint(strings.TrimSpace(key), 0, 16)
		if err != nil {
			return s, false, fmt.Errorf("%w: %w", errUnlike, err)
		}
		s.key = uint16(v) &^ fullBit
	}
	for _, flag := range parts[1:] {
		word, value, _ := strings.Cut(flag, "=")
		switch word = strings.TrimSpace(word); {
		case word == "indx0":
			s.index0 = true
		case word != "" && strings.HasPrefix("defmember", word):
			if full, err = readMembership(value); err != nil {
				return s, false, err
			}
		}
	}
	return s, full, nil
}

// readMembership reports whether the word is a full membership; both is one.
func readMembership(word string) (full bool, err error) {
	word = strings.TrimSpace(word)
	for _, known := range []string{"full", "both", "limited"} {
		if word != "" && strings.HasPrefix(known, word) {
			return known != "limited", nil
		}
	}
	return false, fmt.Errorf("%w: membership %q", errUnlike, word)
}

// readSelector reads a GUID, or a keyword or the beginning of one.
func readSelector(word string) (string, error) {
	keywords := []string{"ALL", "ALL_CAS", "ALL_SWITCHES", "ALL_ROUTERS", "SELF", "NONE"}
	if slices.Contains(keywords, word) {
		return word, nil
	}
	keywords = slices.DeleteFunc(keywords, func(k string) bool { return !strings.HasPrefix(k, word) })
	if word != "" && len(keywords) == 1 {
		return keywords[0], nil
	}
	guid, err := strconv.ParseUint(word, 0, 64)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errUnlike, err)
	}
	return guidText(guid), nil
}

// readMembers reads the rest of one line of a definition.
func (s *statement) readMembers(items string, defaultFull bool) error {
	for _, item := range strings.Split(items, ",") {
		word, value, stated := strings.Cut(item, "=")
		m := member{selector: strings.TrimSpace(word), full: defaultFull}
		if m.selector == "" && !stated {
			continue
		}
		if m.selector == "mgid" {
			return nil // it takes the rest of the line
		}
		var err error
		if m.selector, err = readSelector(m.selector); err != nil {
			return err
		}
		if stated {
			full, err := readMembership(value)
			if err != nil {
				return err
			}
			m.full = full
		}
		s.members = append(s.members, m)
	}
	return nil
}
