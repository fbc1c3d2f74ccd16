package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// Limits of a file.
const (
	MaxLine         = 4096 // bytes of a line
	MaxIncludeDepth = 8    // of files included by files
	MaxIncludes     = 256  // of files included in all
	MaxModule       = 20   // bytes of a module name
	MaxAlias        = 39   // bytes of module@alias

	ibsimLine   = 254 // bytes; ibsim splits longer lines
	maxVendorID = 0xFF_FFFF
)

// Include opens a file that another one names in an include line.
type Include func(name string) ([]byte, error)

// FileSizeMax is the largest topology file that ought to be read, in bytes.
const FileSizeMax = 1 << 30

// Read reads a topology in ibsim's netfile format or in ibnetdiscover's. The
// name stands for the file in messages. A nil include refuses include lines.
// The error is of type Faults and lists all that is wrong; the warnings are
// complete with and without an error.
func Read(data []byte, name string, include Include) (*Netlist, []Warning, error) {
	r := &reader{
		include: include,
		rates:   DefaultRates,
		guids:   newGUIDSequence(),
		byID:    make(map[string]*record),
		aliases: make(map[string]aliasUse),
		netlist: new(Netlist),
		at:      Position{File: name},
	}
	r.file(string(data))
	if !r.stopped {
		r.at = Position{File: name, Line: 1, Column: 1}
		if len(r.records) == 0 {
			r.faultAt(r.at, "no node record: want at least one line that starts with Switch, Ca, Hca or Rt")
		}
		r.connect()
		r.netlist.check(func(i int, err error) { r.faultAt(r.records[i].place, "%w", err) })
	}
	if len(r.faults) > 0 {
		return nil, r.warnings, r.faults
	}
	return r.netlist, r.warnings, nil
}

// reader is the state of reading one file and what it includes.
type reader struct {
	include  Include
	depth    int
	includes int
	stopped  bool // a limit was reached

	at       Position // the line being read
	faults   Faults
	warnings []Warning

	netlist    *Netlist
	records    []*record // one for each node of netlist
	byID       map[string]*record
	aliases    map[string]aliasUse // by module@alias
	open       *record             // the record to which port lines belong
	totalPorts int

	// What setting lines say about the nodes that follow.
	guids       guidSequence
	swPortGUID  ib.PortGUID // next switch, 0 for none
	vendorID    uint32      // next node
	systemImage uint64      // next node, 0 for none
	deviceID    uint16
	module      string
	rates       Rates
}

// record is a node while it is read.
type record struct {
	node  *Node
	place Position
	lines []portLine // by port
	count int        // of lines seen, good or not
}

// faultAt notes a fault. A fault too many ends reading.
func (r *reader) faultAt(at Position, format string, args ...any) {
	switch {
	case r.stopped:
		return
	case len(r.faults) == MaxFaults:
		r.stopped = true
		format, args = "more than %d faults: the rest is not listed", []any{MaxFaults}
	}
	r.faults = append(r.faults, &Fault{at, fmt.Errorf(format, args...)})
}

func (r *reader) warnAt(at Position, format string, args ...any) {
	if len(r.warnings) < MaxWarnings {
		r.warnings = append(r.warnings, Warning{at, fmt.Sprintf(format, args...)})
	}
}

// column is the current line at offset pos.
func (r *reader) column(pos int) Position {
	at := r.at
	at.Column = pos + 1
	return at
}

func (r *reader) warn(c *cursor, format string, args ...any) {
	r.warnAt(r.column(c.pos), format, args...)
}

// failed notes a failure of c, if there is one, and lets it read on.
func (r *reader) failed(c *cursor) bool {
	if c.err == nil {
		return false
	}
	r.faultAt(r.column(c.pos), "%w", c.err)
	c.err = nil
	return true
}

// file reads the lines of one file, r.at naming it.
func (r *reader) file(text string) {
	for len(text) > 0 && !r.stopped {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		r.at.Line++
		r.at.Column = 1
		if len(line) > MaxLine {
			r.faultAt(r.column(MaxLine), "line of %d bytes: want at most %d", len(line), MaxLine)
			continue
		}
		r.line(&cursor{text: strings.TrimSuffix(line, "\r")})
	}
	r.open = nil
}

// keywords start the lines that ibsim reads; it compares no further.
var keywords = []string{
	"Switch", "Hca", "Ca", "Rt", "switchguid", "hcaguids", "caguid", "rtguid", "vendid", "devid",
	"sysimgguid", "width", "speed", "extspeed", "module", "include", "pdebug", "do",
}

func (r *reader) line(c *cursor) {
	if c.peek() == '#' {
		return // does not end a record
	}
	switch {
	case c.peek() == '[' || c.peek() == '@':
		r.portLine(c)
		return
	case isIndentedPortLine(c.text):
		r.faultAt(r.at, "blank before a port line: want [ in column 1")
		return
	}
	unfinished := r.open != nil && r.open.count < r.open.node.NumPorts()
	r.open = nil
	word := c.word()
	if !slices.ContainsFunc(keywords, func(k string) bool { return strings.HasPrefix(word, k) }) {
		if word != "" && c.peek() == '=' {
			r.warnAt(r.at, "setting %q is unknown and ignored", word)
		}
		return
	}
	if unfinished {
		r.warnAt(r.at, "no blank line ends the record before: ibsim ignores this line")
	}
	r.warnIfLong(c)
	r.keyword(word, c)
	r.failed(c)
}

// isIndentedPortLine recognizes a port line that ibsim would pass over in silence.
func isIndentedPortLine(text string) bool {
	text = strings.TrimLeft(text, " \t")
	return len(text) > 1 && text[0] == '[' && isDigit(text[1]) && strings.Contains(text, `"`)
}

func (r *reader) warnIfLong(c *cursor) {
	if len(c.text) > ibsimLine {
		r.warnAt(r.column(ibsimLine), "line of %d bytes: ibsim reads lines of at most %d", len(c.text), ibsimLine)
	}
}

// keyword reads a line whose first word starts like a keyword.
func (r *reader) keyword(word string, c *cursor) {
	switch word {
	case "Switch":
		r.header(ib.NodeSwitch, c)
	case "Ca", "Hca":
		r.header(ib.NodeCA, c)
	case "Rt":
		r.header(ib.NodeRouter, c)
	case "switchguid", "switchguids":
		r.setGUID(ib.NodeSwitch, c)
	case "caguid", "caguids", "hcaguids":
		r.setGUID(ib.NodeCA, c)
	case "rtguid", "rtguids":
		r.setGUID(ib.NodeRouter, c)
	case "vendid":
		setNumber(c, "a vendor id", 0, maxVendorID, &r.vendorID)
	case "devid":
		setNumber(c, "a device id", 0, math.MaxUint16, &r.deviceID)
	case "sysimgguid":
		setNumber(c, "a GUID", 0, math.MaxUint64, &r.systemImage)
	case "width":
		setNumber(c, "a mask of link widths", 1, widthMask, &r.rates.Width)
	case "speed":
		setNumber(c, "a mask of link speeds", 1, speedMask, &r.rates.Speed)
	case "extspeed":
		setNumber(c, "a mask of extended link speeds", 0, extSpeedMask, &r.rates.ExtSpeed)
	case "module":
		r.setModule(c)
	case "include":
		r.includeLine(c)
	case "pdebug":
		// Asks ibsim's own parser for a trace.
	case "do":
		c.skipBlanks()
		command := strings.TrimRight(c.rest(), " \t")
		c.refuseControl("a command", command, c.pos)
		r.netlist.Commands = append(r.netlist.Commands, strings.Clone(command))
	default:
		r.warnAt(r.at, "line starts with %q and is ignored: ibsim would take it for another keyword", word)
	}
}

// assignment reads the = of a setting line.
func assignment(c *cursor) {
	c.skipBlanks()
	c.expect("=")
	c.skipBlanks()
}

// endOfSetting fails unless nothing but a comment follows a setting's value.
func endOfSetting(c *cursor) {
	if c.skipBlanks(); c.peek() != 0 && c.peek() != '#' {
		c.want("the end of the line or a comment")
	}
}

// setNumber reads "=number".
func setNumber[T uint8 | uint16 | uint32 | uint64](c *cursor, what string, lo, hi uint64, to *T) {
	assignment(c)
	v := c.number(what, 0, lo, hi)
	endOfSetting(c)
	if c.err == nil {
		*to = T(v)
	}
}

// setGUID reads "=GUID", "=GUID(port GUID)" or "+offset" for the next node of
// type t.
func (r *reader) setGUID(t ib.NodeType, c *cursor) {
	relative := c.accept("+")
	if !relative {
		assignment(c)
	}
	v := c.number("a GUID", 0, 0, math.MaxUint64)
	portGUID := portGUIDIn(c)
	endOfSetting(c)
	switch {
	case c.err != nil:
		return
	case relative:
		r.guids.setRelative(t, v)
	default:
		r.guids.set(t, v)
	}
	if t == ib.NodeSwitch {
		r.swPortGUID = portGUID
	}
}

// portGUIDIn reads "(GUID)" in hexadecimal, if it comes next; else it returns 0.
func portGUIDIn(c *cursor) ib.PortGUID {
	if !c.accept("(") {
		return 0
	}
	guid := c.number("a port GUID", 16, 1, math.MaxUint64)
	c.expect(")")
	return ib.PortGUID(guid)
}

func (r *reader) setModule(c *cursor) {
	assignment(c)
	start := c.pos
	name := c.quoted("a module name")
	if len(name) > MaxModule || strings.ContainsAny(name, "#@") {
		c.fail(start, "module name %q: want up to %d bytes without # and @", name, MaxModule)
	}
	if c.err == nil {
		r.module = strings.Clone(name)
	}
}

func (r *reader) includeLine(c *cursor) {
	name := c.quoted("a file name")
	switch {
	case c.err != nil:
		return
	case r.include == nil:
		c.fail(c.pos, "include %q: included files are not read here: want all in one file", name)
		return
	case r.depth == MaxIncludeDepth:
		c.fail(c.pos, "include %q: want at most %d files deep", name, MaxIncludeDepth)
		return
	case r.includes == MaxIncludes:
		r.faultAt(r.column(c.pos), "include %q: want at most %d included files", name, MaxIncludes)
		r.stopped = true
		return
	}
	data, err := r.include(name)
	if err != nil {
		c.fail(c.pos, "include %q: %w", name, err)
		return
	}
	r.includes++
	outer := r.at
	r.depth++
	r.at = Position{File: name}
	r.file(string(data))
	r.depth--
	r.at = outer
}
