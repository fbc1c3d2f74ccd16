package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// The rules.
//
// Hosts (CA and router ports) do their worst: whatever a host's own P_Key table says, it sends
// packets with any P_Key, full or limited, and any other header, and takes packets with any.
// Nothing is assumed of routes: a packet that a switch takes can leave at any port of the
// fabric. Switches do what their tables say, as long as no host can write these; that takes
// an M_Key of the switch's own which it shows to nobody.
//
// A host is held by the switch port that it is cabled to. Where that port checks P_Keys
// inbound, the host sends only packets of partitions in the port's table, and where it checks
// outbound, it gets only those. Membership counts for nothing there: a limited entry lets a
// forged full key pass, which every member takes. Port 0 of a switch sends on behalf of no host,
// and gets only what its own table has. So a packet arrives where a partition is in both tables, or in one and
// the other does not check; and a raw packet, which has no P_Key, where neither the first
// switch port filters inbound nor the last outbound.
//
// The policy allows a packet between two end ports whose classes share a partition of which
// one of them is a full member. What arrives between others is a no. So is a table that is
// not what the class says, since then the claim was not made of these facts.
//
// proof/ has these rules once more, in Coq, with the proof that what they accept is isolated.

// listedMost bounds the reasons of each kind that are kept.
const listedMost = 20

// verdict is what was found, in words.
type verdict struct{ no, unknown []string }

func (v *verdict) fail(format string, args ...any) {
	if len(v.no) < listedMost {
		v.no = append(v.no, fmt.Sprintf(format, args...))
	}
}

func (v *verdict) doubt(format string, args ...any) {
	if len(v.unknown) < listedMost {
		v.unknown = append(v.unknown, fmt.Sprintf(format, args...))
	}
}

// anything stands for a set of keys where nothing is checked.
const anything = -3

// group are end ports of which the same is true.
type group struct {
	reach
	ports []*end
}

// reach is what an end port can do at worst.
type reach struct {
	class             int
	sends, gets       int // sets of keys, or anything
	rawSends, rawGets bool
	isSwitch          bool
}

// checker is the work on one certificate.
type checker struct {
	*certificate
	verdict
	known  map[reach]*group
	groups []*group // in the order of their first ports
}

func check(c *certificate) *verdict {
	v := &checker{certificate: c, known: map[reach]*group{}}
	v.devices()
	for i, e := range c.ends {
		if i > 0 && c.ends[i-1].guid == e.guid {
			v.doubt("two end ports have the GUID %s: which of them the policy means is not known", e.guid)
		}
		if r, ok := v.hold(e); ok {
			g := v.known[r]
			if g == nil {
				g = &group{reach: r}
				v.known[r], v.groups = g, append(v.groups, g)
			}
			g.ports = append(g.ports, e)
		}
	}
	v.crossings()
	v.unchecked()
	if !c.rawAllowed {
		v.raw()
	}
	for _, e := range c.ends {
		v.exact(e)
	}
	return &v.verdict
}

// devices looks at what does not belong to one end port: switches, cables, and links behind
// which somebody may be.
func (v *checker) devices() {
	for _, u := range v.unread {
		v.doubt("%s: %s", u[0], u[1])
	}
	for _, guid := range sorted(v.switches) {
		v.guarded(v.switches[guid])
	}
	for _, x := range v.cables {
		if !x.listed {
			v.doubt("that %s and %s are cabled is on no list of cables: who is there is only what they say of themselves", v.placeName(x.a), v.placeName(x.b))
		}
		for _, at := range []place{x.a, x.b} {
			if v.switches[at.node()] == nil && v.at[at] == nil {
				v.doubt("%s was not read", v.placeName(at))
			}
		}
	}
	for _, at := range v.inOrder {
		p, d := v.ports[at], v.switches[at.node()]
		if _, cabled := v.peer[at]; cabled || p.state == "1" || p.state == "2" { // Down; Initialize, where no data passes
			continue
		}
		shut := bothChecked(d.entries, d.enforces, p.enforce) && p.keys >= 0 && len(v.sets[p.keys]) == 0
		if !shut || !v.rawAllowed && !bothChecked("", d.filters, p.filter) {
			v.doubt("who is behind %s was not read", v.placeName(at))
		}
	}
}

// guarded looks whether a host can write the tables of a switch.
func (v *checker) guarded(d *device) {
	name := fmt.Sprintf("switch %s (%s)", d.guid, d.name)
	switch {
	case d.key == "unread" || d.key == "hidden" || d.protect == "unread" || d.lease == "unread":
		v.doubt("%s: whether an M_Key guards it was not read", name)
	case d.key == "none":
		v.fail("%s takes management writes from every host: it has no M_Key", name)
	case d.key == "weak":
		v.fail("%s takes management writes from every host: its M_Key can be guessed", name)
	case d.key == "shared":
		v.fail("%s takes management writes from who controls another port: that has the same M_Key", name)
	case d.protect == "0":
		v.fail("%s shows its M_Key to every host: its protection level is 0", name)
	case d.lease != "0":
		v.fail("%s shows its M_Key once the lease of %s s has run out", name, d.lease)
	}
}

// What a switch port does in one direction.
type checking int

const (
	passes checking = iota
	checks
	notKnown
)

// does says whether a port checks in a direction: what the switch can, and what is on.
func does(entries, can, on, direction string) checking {
	has := func(ways string) bool { return ways == direction || ways == "both" }
	switch {
	case entries == "0", can != "unread" && !has(can), on != "unread" && !has(on):
		return passes
	case entries == "unread", can == "unread", on == "unread":
		return notKnown
	}
	return checks
}

// bothChecked reports whether a port checks in both directions.
func bothChecked(entries, can, on string) bool {
	return does(entries, can, on, "in") == checks && does(entries, can, on, "out") == checks
}

// hold finds what an end port can do at worst; ok is false where that is not known.
func (v *checker) hold(e *end) (r reach, ok bool) {
	r = reach{class: e.class, sends: anything, gets: anything, rawSends: true, rawGets: true}
	if e.kind == "switch" {
		r.isSwitch, r.sends, r.gets = true, e.keys, e.keys
		return r, e.keys >= 0 // exact says that it was not read
	}
	at, cabled := v.peer[e.at]
	if !cabled {
		v.doubt("where %s is cabled was not read", e)
		return r, false
	}
	p, d := v.ports[at], v.switches[at.node()]
	if p == nil {
		return r, true // cabled to a host: nothing checks
	}
	in, out := does(d.entries, d.enforces, p.enforce, "in"), does(d.entries, d.enforces, p.enforce, "out")
	rawIn, rawOut := does("", d.filters, p.filter, "in"), does("", d.filters, p.filter, "out")
	switch {
	case in == notKnown || out == notKnown:
		v.doubt("whether %s checks the P_Keys of %s was not read", v.placeName(at), e)
		return r, false
	case (in == checks || out == checks) && p.keys < 0:
		v.doubt("the P_Key table of %s, which holds %s, was not read", v.placeName(at), e)
		return r, false
	case !v.rawAllowed && (rawIn == notKnown || rawOut == notKnown):
		v.doubt("whether %s filters the raw packets of %s was not read", v.placeName(at), e)
		return r, false
	}
	if in == checks {
		r.sends = p.keys
	}
	if out == checks {
		r.gets = p.keys
	}
	r.rawSends, r.rawGets = rawIn != checks, rawOut != checks
	return r, true
}

// member is a group whose port has a partition in its table, and what its class has of it.
type member struct {
	*group
	has int // 0: nothing, 1: the limited key, 2: the full one
}

// crossings looks at each partition for packets that arrive where the policy does not allow
// it, between tables that are checked.
func (v *checker) crossings() {
	senders, getters := map[key][]member{}, map[key][]member{}
	for _, g := range v.groups {
		v.enroll(senders, g, g.sends)
		v.enroll(getters, g, g.gets)
	}
	for _, base := range sorted(senders) {
		to := getters[base]
		slices.SortStableFunc(to, func(a, b member) int { return a.has - b.has })
		for _, s := range senders[base] {
			for _, r := range to {
				if s.has > 0 && r.has > 0 && s.has+r.has > 2 {
					break // allowed over this very partition, and so are those that follow
				}
				if v.apart(s.group, r.group, fmt.Sprintf("with P_Key 0x%04x", uint16(base|full)), "the tables of both have the partition") {
					return
				}
			}
		}
	}
}

// enroll enters a group for each partition in a set.
func (v *checker) enroll(into map[key][]member, g *group, set int) {
	if set == anything {
		return
	}
	for _, k := range v.sets[set] {
		m := member{group: g}
		for _, c := range v.sets[g.class] {
			if c.base() == k.base() {
				m.has = 1 + int(c>>15)
			}
		}
		into[k.base()] = append(into[k.base()], m)
	}
}

// unchecked looks for packets from and to ports where no switch checks.
func (v *checker) unchecked() {
	for _, s := range v.groups {
		for _, r := range v.groups {
			k, why := key(1), "no switch port checks what the first sends"
			switch {
			case s.sends != anything && r.gets != anything:
				continue
			case r.gets != anything && len(v.sets[r.gets]) > 0:
				k = v.sets[r.gets][0]
			case s.sends != anything && len(v.sets[s.sends]) > 0:
				k, why = v.sets[s.sends][0], "no switch port checks what the second gets"
			case s.sends != r.gets:
				continue // one of the two sends, or gets, nothing
			}
			if v.apart(s, r, fmt.Sprintf("with P_Key 0x%04x", uint16(k|full)), why) {
				return
			}
		}
	}
}

// raw looks for raw packets.
func (v *checker) raw() {
	for _, s := range v.groups {
		for _, r := range v.groups {
			if s.rawSends && r.rawGets && v.apart(s, r, "raw packets", "no switch port filters them") {
				return
			}
		}
	}
}

// apart says no where the policy keeps two groups apart, of which the first can send to the
// second. It reports whether enough has been found.
func (v *checker) apart(s, r *group, what, why string) bool {
	from, to := s.ports[0], r.ports[0]
	if s == r {
		if len(s.ports) == 1 {
			return false
		}
		to = s.ports[1]
	}
	if s.isSwitch || v.allowed(s.class, r.class) {
		return false
	}
	v.fail("%s can send to %s %s: %s", from, to, what, why)
	return len(v.no) == listedMost
}

// allowed reports whether two classes share a partition of which one is a full member.
func (v *checker) allowed(a, b int) bool {
	x, y := v.sets[a], v.sets[b]
	for len(x) > 0 && len(y) > 0 {
		switch {
		case x[0].base() < y[0].base():
			x = x[1:]
		case x[0].base() > y[0].base():
			y = y[1:]
		case (x[0]|y[0])&full != 0:
			return true
		default:
			x, y = x[1:], y[1:]
		}
	}
	return false
}

// exact looks whether the tables of an end port and of the switch port that holds it are what
// its class says: a claim that was not made of these facts is a no.
func (v *checker) exact(e *end) {
	at := v.peer[e.at]
	if p := v.ports[at]; p != nil && p.keys >= 0 {
		d := v.switches[at.node()]
		if bothChecked(d.entries, d.enforces, p.enforce) && len(v.sets[p.keys])+len(v.sets[e.class]) == 0 {
			return // nothing passes, whatever its own table holds
		}
		in, out := does(d.entries, d.enforces, p.enforce, "in"), does(d.entries, d.enforces, p.enforce, "out")
		if what := v.differ(p.keys, e.class, true); what != "" && (in == checks || out == checks) {
			v.fail("the P_Key table of %s, which holds %s, %s", v.placeName(at), e, what)
		}
	}
	if e.keys < 0 {
		v.doubt("the P_Key table of %s was not read", e)
	} else if what := v.differ(e.keys, e.class, false); what != "" {
		v.fail("the P_Key table of %s %s", e, what)
	}
}

// differ says how a table differs from a class, in partitions only where membership does not
// count; "" for not at all.
func (v *checker) differ(table, class int, partitions bool) string {
	lacks := func(set []key, k key) bool {
		return !slices.ContainsFunc(set, func(x key) bool { return x.base() == k.base() && (x >= k || partitions) })
	}
	for _, k := range v.sets[class] {
		if table != class && lacks(v.sets[table], k) {
			return fmt.Sprintf("lacks 0x%04x, which its class has", uint16(k))
		}
	}
	for _, k := range v.sets[table] {
		if table != class && lacks(v.sets[class], k) {
			return fmt.Sprintf("has 0x%04x, which its class has not", uint16(k))
		}
	}
	return ""
}

func (e *end) String() string { return fmt.Sprintf("%s (%s:%s)", e.guid, e.name, e.at.num()) }

// placeName names a port for people.
func (c *certificate) placeName(at place) string {
	switch {
	case c.switches[at.node()] != nil:
		return fmt.Sprintf("port %s (%s)", at, c.switches[at.node()].name)
	case c.at[at] != nil:
		return c.at[at].String()
	}
	return fmt.Sprintf("port %s", at)
}

// sorted are the keys of a map in order.
func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
