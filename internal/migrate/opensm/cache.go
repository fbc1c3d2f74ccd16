package opensm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// cache says what becomes of the files in OpenSM's cache directory.
func (m *migration) cache() error {
	if t, ok := m.files[GUIDToLID]; ok {
		owner := map[uint16]int{}
		if err := m.list(t, ListSizeMax, func(line int, words []string) (Line, bool) { return m.lids(owner, line, words), true }); err != nil {
			return err
		}
	}
	if t, ok := m.files[GUIDToMKey]; ok {
		err := m.list(t, ListSizeMax, func(_ int, words []string) (Line, bool) {
			l := Line{What: "the M_Key of a port", Verdict: Taken, Becomes: "with --write-data: a key that is tried, and replaced by one of the port's own"}
			if g, key := words[0], words[len(words)-1]; len(words) != 2 || !parses(g) || !parses(key) {
				l = Line{What: "a line with other than two numbers", Verdict: NotPossible, Why: "want the GUID of a port and its M_Key; ibwarden keys import refuses the file"}
				m.BadKeys = true
			}
			return l, true
		})
		if err != nil {
			return err
		}
	}
	if t, ok := m.files[Neighbors]; ok {
		return m.list(t, ListSizeMax, func(_ int, words []string) (Line, bool) {
			l := Line{What: "a cable", Verdict: Taken, Becomes: "with --write-data: where the keys of guid2mkey are tried"}
			if len(words) != 2 || !isPort(words[0]) || !isPort(words[1]) {
				m.BadKeys = true
				return Line{What: "a line with other than two ports", Verdict: NotPossible, Why: "want two ports, each a GUID, a colon and a number"}, true
			}
			if _, keys := m.files[GUIDToMKey]; !keys {
				l.Verdict, l.Becomes, l.Why = NotNeeded, "", "it says where keys are tried, and there is no guid2mkey; cables are learned at the first start (ibwarden topology)"
			}
			return l, true
		})
	}
	return nil
}

func parses(word string) bool {
	_, err := strconv.ParseUint(word, 0, 64)
	return err == nil
}

// isPort reports whether a word is a GUID, a colon and the number of a port.
func isPort(word string) bool {
	g, num, ok := strings.Cut(word, ":")
	_, err := strconv.ParseUint(num, 10, 8)
	return ok && parses(g) && err == nil
}

// lids takes over the LIDs of a line of guid2lid.
func (m *migration) lids(owner map[uint16]int, line int, words []string) Line {
	l := Line{What: "the LIDs of a port", Verdict: Taken, Becomes: "with --write-data: the LID in state.json, kept for the port while it is off"}
	bad := func(why string) Line {
		return Line{What: "the LIDs of a port", Verdict: NotPossible, Why: why}
	}
	if len(words) != 3 {
		return bad("want a port GUID, the first LID and the last")
	}
	g, ok := guid(words[0])
	first, err := strconv.ParseUint(words[1], 0, 16)
	last, err2 := strconv.ParseUint(words[2], 0, 16)
	switch {
	case !ok || err != nil || err2 != nil || last < first:
		return bad("want a port GUID, the first LID and the last")
	case !ib.LID(first).IsUnicast() || !ib.LID(last).IsUnicast() || last-first >= 1<<ib.LMCMax:
		return bad("want unicast LIDs, 0x0001 to 0xbfff, at most 128 of a port")
	}
	if _, again := m.LIDs[g]; again {
		return bad("the port has LIDs in an earlier line")
	}
	for lid := first; lid <= last; lid++ {
		if was := owner[uint16(lid)]; was != 0 {
			return bad(fmt.Sprintf("LID %d is that of the port in line %d", lid, was))
		}
	}
	for lid := first; lid <= last; lid++ {
		owner[uint16(lid)] = line
	}
	if m.LIDs == nil {
		m.LIDs = map[uint64]uint16{}
	}
	m.LIDs[g] = uint16(first)
	return l
}
