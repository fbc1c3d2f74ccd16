package topology

import (
	"cmp"
	"math"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
)

// portLine is a line of a record: port says it is cabled to remotePort of
// remote.
type portLine struct {
	place      Position // zero if the file has no line for the port
	port       ib.PortNum
	hasGUID    bool   // gives the port's GUID
	isAlias    bool   // only gives the port another name, remote
	remote     string // node id, or module@alias
	remotePort ib.PortNum
	remoteGUID ib.PortGUID // 0 for none
}

// isListed reports whether the file has a line for the port.
func (l *portLine) isListed() bool { return l.place.Line != 0 }

// aliasUse is the port that an alias names.
type aliasUse struct {
	record *record
	line   *portLine
}

// header reads the first line of a record from after its keyword:
// ports "id" # description attributes.
func (r *reader) header(t ib.NodeType, c *cursor) {
	c.skipBlanks()
	ports := c.number("the number of ports", 0, 1, MaxPorts)
	c.skipBlanks()
	start := c.pos
	id := c.quoted("a node id")
	if strings.ContainsAny(id, "#@") {
		c.fail(start, "node id %q: want no # or @ in it", id)
	}
	if r.module != "" {
		id = r.module + "#" + id
	}
	if err := checkID(id); err != nil {
		c.fail(start, "%w", err)
	}
	if r.failed(c) {
		// The port lines go to a node that is not part of the netlist.
		r.open = &record{
			node:  &Node{Type: t, Ports: make([]Port, MaxPorts+1)},
			lines: make([]portLine, MaxPorts+1),
		}
		return
	}
	r.totalPorts += int(ports)
	if len(r.records) == MaxNodes || r.totalPorts > MaxTotalPorts {
		r.faultAt(r.at, "one node too many: want at most %d nodes and %d ports", MaxNodes, MaxTotalPorts)
		r.stopped = true
		return
	}
	r.open = &record{
		place: r.at,
		node:  r.node(t, id, ib.PortNum(ports)),
		lines: make([]portLine, ports+1),
	}
	if r.open.node.GUID == 0 {
		r.warnAt(r.at, "node GUID 0, which some subnet managers do not manage: want a line before it like rtguid=0x300000")
	}
	r.attributes(r.open.node, c)
	r.records = append(r.records, r.open)
	r.netlist.Nodes = append(r.netlist.Nodes, r.open.node)
	if r.byID[id] == nil {
		r.byID[r.open.node.ID] = r.open
	}
}

// node makes a node with what the settings say about it.
func (r *reader) node(t ib.NodeType, id string, ports ib.PortNum) *Node {
	n := NewNode(t, strings.Clone(id), r.guids.take(t, ports), ports)
	n.VendorID, n.DeviceID = r.vendorID, r.deviceID
	n.SystemImageGUID = cmp.Or(r.systemImage, n.SystemImageGUID)
	r.vendorID, r.systemImage = 0, 0
	if t == ib.NodeSwitch {
		n.Ports[0].GUID = cmp.Or(r.swPortGUID, n.Ports[0].GUID)
		r.swPortGUID = 0
	}
	if r.rates != DefaultRates {
		for p := range n.Ports {
			n.Ports[p].Enabled = r.rates
		}
	}
	return n
}

// attributes reads what follows the id in a record header.
func (r *reader) attributes(n *Node, c *cursor) {
	if i := strings.IndexByte(c.rest(), '#'); i >= 0 {
		c.pos += i + 1
		r.description(n, c)
	}
	if n.Type == ib.NodeSwitch {
		n.EnhancedPort0 = strings.Contains(c.rest(), "enhanced port 0")
		r.address(&n.Ports[0], *c)
	}
}

// description reads a quoted description, or one that ends where attributes
// begin.
func (r *reader) description(n *Node, c *cursor) {
	c.skipBlanks()
	isQuoted := c.accept(`"`)
	start, text := c.pos, c.rest()
	end := strings.IndexByte(text, '"')
	if isQuoted && end >= 0 {
		text = text[:end]
		c.pos += end + 1
	} else {
		if isQuoted {
			r.warn(c, "description without a closing double quote")
		}
		for _, key := range []string{" enhanced port ", " base port ", " lid ", " lmc "} {
			if i := strings.Index(text, key); i >= 0 {
				text = text[:i]
				break
			}
		}
		c.pos += len(text)
		text = strings.TrimRight(text, " \t")
	}
	if len(text) > MaxDescription {
		r.warnAt(r.column(start), "description of %d bytes: cut to %d", len(text), MaxDescription)
		text = text[:MaxDescription]
	}
	if c.refuseControl("a description", text, start); !r.failed(c) && text != "" {
		n.Description = strings.Clone(text)
	}
}

// address reads the LID and LMC that the rest of a line presets.
func (r *reader) address(p *Port, c cursor) {
	p.LID = ib.LID(r.preset(c, "LID", uint64(ib.LIDUnicastMax)))
	p.LMC = ib.LMC(r.preset(c, "LMC", uint64(ib.LMCMax)))
}

// preset reads one value that the rest of a line presets, 0 if there is none.
func (r *reader) preset(c cursor, name string, limit uint64) uint64 {
	if !c.seek(strings.ToLower(name)) {
		return 0
	}
	v := c.number("the "+name, 0, 0, limit)
	if c.err != nil {
		r.warn(&c, "%v: none is preset", c.err)
	}
	return v
}

// portLine reads a line of a record:
// [port](GUID) "remote id"[remote port](GUID) options # comment.
func (r *reader) portLine(c *cursor) {
	r.warnIfLong(c)
	if r.open == nil {
		r.faultAt(r.at, "port line outside a node record: want it below its Switch, Ca, Hca or Rt line, without a blank line between")
		return
	}
	rec := r.open
	rec.count++
	line := portLine{place: r.at, isAlias: c.accept("@")}
	r.ends(rec, &line, c)
	if r.failed(c) {
		return
	}
	l := &rec.lines[line.port]
	if l.isListed() {
		r.faultAt(r.at, "port %d is listed twice, first at %v", l.port, l.place)
		return
	}
	*l = line
	if l.isAlias {
		r.alias(rec, l)
	}
	port := &rec.node.Ports[l.port]
	r.options(port, c)
	r.tail(rec.node, port, c)
}

// ends reads both ends of a port line.
func (r *reader) ends(rec *record, l *portLine, c *cursor) {
	var guid ib.PortGUID
	l.port, guid = endIn(c, rec.node.NumPorts())
	if l.hasGUID = guid != 0 && rec.node.Type != ib.NodeSwitch; l.hasGUID {
		rec.node.Ports[l.port].GUID = guid
	}
	l.remote = c.quoted("a remote node id")
	if l.isAlias || c.err != nil {
		return
	}
	l.remote, l.remotePort = r.expand(l.remote), 1
	before := *c
	moved := c.skipBlanks()
	if c.peek() != '[' {
		*c = before
		return
	}
	if moved {
		r.warn(c, "blank before the remote port: ibsim takes port 1")
	}
	l.remotePort, l.remoteGUID = endIn(c, MaxPorts)
}

// endIn reads [port](GUID), the port from 1 to limit, the GUID 0 if there is
// none. ibnetdiscover writes the number on a chassis as [ext N] between them.
func endIn(c *cursor, limit int) (ib.PortNum, ib.PortGUID) {
	c.expect("[")
	port := c.number("a port number", 10, 1, uint64(limit))
	c.expect("]")
	if c.accept("[ext ") {
		c.number("an external port number", 10, 0, math.MaxUint8)
		c.expect("]")
	}
	c.skipBlanks()
	return ib.PortNum(port), portGUIDIn(c)
}

// expand gives a remote id its module, unless it names one.
func (r *reader) expand(id string) string {
	switch {
	case strings.HasPrefix(id, "@"):
		return r.module + id
	case r.module != "" && !strings.ContainsAny(id, "#@"):
		return r.module + "#" + id
	}
	return id
}

// alias enters the name that an alias line gives to its port.
func (r *reader) alias(rec *record, l *portLine) {
	name := r.module + "@" + l.remote
	first, again := r.aliases[name]
	switch {
	case strings.ContainsAny(l.remote, "#@"):
		r.faultAt(l.place, "alias %q: want no # or @ in it", l.remote)
	case len(name) > MaxAlias:
		r.faultAt(l.place, "alias %q: want at most %d bytes with the module", name, MaxAlias)
	case again:
		r.faultAt(l.place, "alias %q is given twice, first at %v", name, first.line.place)
	default:
		r.aliases[name] = aliasUse{rec, l}
	}
}

// options reads w=, s= and e= before the comment of a port line.
func (r *reader) options(p *Port, c *cursor) {
	for {
		for c.skipBlanks() || c.accept(",") {
		}
		if c.peek() == 0 || c.peek() == '#' || strings.HasPrefix(c.rest(), "lid ") {
			return
		}
		start := *c
		key := c.word()
		if !c.accept("=") {
			start.want("an option, w=, s= or e=, or a comment")
			r.warn(&start, "%v", start.err)
			c.skipWord()
			continue
		}
		option(p, key, c)
		if r.failed(c) {
			c.skipWord()
		}
	}
}

// option reads the value of one option.
func option(p *Port, key string, c *cursor) {
	switch key {
	case "w":
		p.Enabled.Width = uint8(c.number("a mask of link widths", 0, 1, widthMask))
	case "s":
		// ibsim means QDR by 0.
		p.Enabled.Speed = cmp.Or(uint8(c.number("a mask of link speeds", 0, 0, speedMask)), SpeedQDR)
	case "e":
		p.Enabled.ExtSpeed = uint8(c.number("a mask of extended link speeds", 0, 0, extSpeedMask))
	default:
		c.fail(c.pos, "option %q is unknown: want w, s or e", key)
	}
}

// tail reads what ibnetdiscover writes at the end of a port line: a CA's own
// "lid N lmc N", the quoted description of the peer, and "lid N 4xQDR".
func (r *reader) tail(n *Node, p *Port, c *cursor) {
	comment, before, after := *c, *c, *c
	if open := strings.IndexByte(c.rest(), '"'); open >= 0 {
		before.text = c.text[:c.pos+open]
		after.pos = strings.LastIndexByte(c.text, '"') + 1
		comment.text = c.text[:after.pos]
	}
	r.warnOfOptions(comment)
	if n.Type != ib.NodeSwitch {
		r.address(p, before)
	}
	if !after.seek("lid") {
		return
	}
	for isDigit(after.peek()) {
		after.pos++
	}
	after.skipBlanks()
	rate, _, _ := strings.Cut(after.rest(), " ")
	if !strings.Contains(rate, "x") {
		return
	}
	enabled, err := p.Enabled.enable(rate)
	if err != nil {
		r.warn(&after, "%v: the port keeps the rates it had", err)
		return
	}
	p.Enabled = enabled
}

// warnOfOptions warns of what ibsim takes for an option inside a comment: an =
// after, perhaps with blanks between, a letter that is one.
func (r *reader) warnOfOptions(comment cursor) {
	text := comment.rest()
	for i := strings.IndexByte(text, '='); i >= 0; {
		letter := strings.TrimRightFunc(text[:i], func(c rune) bool { return !isLetter(byte(c)) })
		if strings.HasSuffix(letter, "w") || strings.HasSuffix(letter, "s") || strings.HasSuffix(letter, "e") {
			comment.pos += len(letter) - 1
			r.warn(&comment, "ibsim reads options in comments: this one is ignored")
			return
		}
		next := strings.IndexByte(text[i+1:], '=')
		if next < 0 {
			return
		}
		i += 1 + next
	}
}
