package observed

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"

	"github.com/ibwarden/ibwarden/ib"
)

const (
	// MaxLFTEntries bounds the entries of all switches together: those of 3,584 switches
	// for 49,151 LIDs are fewer. Each takes 4 bytes.
	MaxLFTEntries = 180_000_000
	// maxSwitches bounds the switches, and maxLine the bytes of a line.
	maxSwitches = int(ib.LIDUnicastMax)
	maxLine     = 4096
	// shown is how much of a line an error repeats, in bytes.
	shown = 80
)

// LFTError is what is wrong with a line of the text.
type LFTError struct {
	Line int // from 1
	Text string
	// Want says what was expected.
	Want string
}

// Error names the line, what it has, and what was expected.
func (e *LFTError) Error() string {
	text := e.Text
	if len(text) > shown {
		text = text[:shown] + "..."
	}
	return fmt.Sprintf("line %d: %q: want %s", e.Line, text, e.Want)
}

// What lines begin with.
var (
	ofSwitch    = []byte("Unicast lids")
	ofMulticast = []byte("Multicast mlids")
	switchGUID  = []byte(" guid 0x")
	portGUID    = []byte(" portguid 0x")
	hex         = []byte("0x")
	dumped      = []byte("lids dumped")
)

// ParseLFTs reads forwarding tables. The error is an *Error or that of the reader.
func ParseLFTs(from io.Reader) (*LFTs, error) {
	p := parser{tables: &LFTs{Owners: map[ib.LID]ib.PortGUID{}}, seen: map[ib.NodeGUID]int{}}
	lines := bufio.NewScanner(from)
	lines.Buffer(make([]byte, 0, maxLine), maxLine)
	for lines.Scan() {
		p.line++
		if want := p.parse(bytes.TrimSpace(lines.Bytes())); want != "" {
			return nil, &LFTError{p.line, string(bytes.TrimSpace(lines.Bytes())), want}
		}
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		return nil, &LFTError{p.line + 1, "", fmt.Sprintf("a line of at most %d bytes", maxLine)}
	} else if err != nil {
		return nil, err
	}
	if len(p.tables.Switches) == 0 {
		return nil, &LFTError{p.line, "", "a line `Unicast lids ... guid 0x...` for each switch, and the text has none"}
	}
	return p.tables, nil
}

type parser struct {
	tables  *LFTs
	line    int
	entries int
	seen    map[ib.NodeGUID]int // the line of each switch
	known   []uint64            // the LIDs of the switch at hand, as bits
}

// parse takes a line; it returns what was expected in its place, nothing if it is right.
func (p *parser) parse(line []byte) (want string) {
	switch {
	case bytes.HasPrefix(line, ofMulticast):
		return "unicast forwarding tables, and these are multicast ones"
	case bytes.HasPrefix(line, ofSwitch):
		return p.header(line)
	case bytes.HasPrefix(line, hex):
		return p.entry(line)
	case len(line) == 0, line[0] == '#', bytes.HasSuffix(line, dumped):
		return ""
	}
	// The titles of ibroute's columns.
	if words := bytes.Fields(line); string(words[0]) == "Lid" || string(words[0]) == "Port" {
		return ""
	}
	return "`Unicast lids ... guid 0x...` of a switch, `0xLID PORT`, or a comment with #"
}

func (p *parser) header(line []byte) string {
	_, rest, some := bytes.Cut(line, switchGUID)
	guid, ok := number(rest, 16, 64)
	if !some || !ok || guid == 0 {
		return "the GUID of the switch, as in `guid 0x0002c90000000010`"
	}
	if first := p.seen[ib.NodeGUID(guid)]; first != 0 {
		return fmt.Sprintf("each switch once, and that of line %d is the same", first)
	}
	if len(p.tables.Switches) == maxSwitches {
		return fmt.Sprintf("at most %d switches", maxSwitches)
	}
	p.seen[ib.NodeGUID(guid)] = p.line
	p.tables.Switches = append(p.tables.Switches, LFTSwitch{GUID: ib.NodeGUID(guid), Line: p.line})
	if p.known == nil {
		p.known = make([]uint64, (int(ib.LIDUnicastMax)+64)/64)
	}
	clear(p.known)
	return ""
}

func (p *parser) entry(line []byte) string {
	n := len(p.tables.Switches)
	if n == 0 {
		return "`Unicast lids ... guid 0x...` of a switch before its entries"
	}
	first, rest, _ := bytes.Cut(line[len(hex):], []byte(" "))
	lid, ok := number(first, 16, 16)
	if !ok || !ib.LID(lid).IsUnicast() {
		return fmt.Sprintf("a unicast LID, 0x1 to %#x", uint16(ib.LIDUnicastMax))
	}
	rest = bytes.TrimLeft(rest, " \t")
	port, ok := number(rest, 10, 8)
	if !ok {
		return "the exit port after the LID, 0 to 255"
	}
	if p.known[lid/64]>>(lid%64)&1 != 0 {
		return fmt.Sprintf("each LID once for a switch, and %#x is there already", lid)
	}
	if p.entries == MaxLFTEntries {
		return fmt.Sprintf("at most %d entries", MaxLFTEntries)
	}
	p.entries++
	p.known[lid/64] |= 1 << (lid % 64)
	if _, text, some := bytes.Cut(rest, portGUID); some {
		guid, ok := number(text, 16, 64)
		if !ok || guid == 0 {
			return "a GUID after portguid"
		}
		if before, known := p.tables.Owners[ib.LID(lid)]; known && before != ib.PortGUID(guid) {
			return fmt.Sprintf("one port for LID %#x, and before it was that of port GUID %s", lid, before)
		}
		p.tables.Owners[ib.LID(lid)] = ib.PortGUID(guid)
	}
	s := &p.tables.Switches[n-1]
	s.Entries = append(s.Entries, LFTEntry{ib.LID(lid), ib.PortNum(port)})
	return ""
}

// number is what text begins with, up to something that is neither digit nor letter.
func number(text []byte, base, bits int) (uint64, bool) {
	end := bytes.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	})
	if end >= 0 {
		text = text[:end]
	}
	n, err := strconv.ParseUint(string(text), base, bits)
	return n, err == nil
}
