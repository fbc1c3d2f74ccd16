package opensm

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// interval is a range of numbers, both ends included.
type interval struct{ first, last uint64 }

// qosLevel is a level of a QoS policy.
type qosLevel struct {
	line, end int
	name      string
	sl        int // -1 for none
	rate      ib.Rate
	lacks     []string // what it has that is not taken
}

// qosRule puts paths on a level: those over some P_Keys, those to some services, or all.
type qosRule struct {
	line, end       int
	what            string
	pkeys, services []interval
	level           string // its name; empty for sl
	sl              int
	why             string // it is not possible
	// last reports whether it counts after all others, wherever it stands.
	last bool
}

// Service IDs of the protocols that a QoS policy knows: the first one, to which the number of
// a port is added.
const (
	serviceSDP = 0x10000
	serviceIP  = 0x1060000 // of the communication manager's TCP port space: RDS, iSER
	portRDS    = 18634
	portISER   = 3260
	portMax    = 0xFFFF
)

// qosFile is a QoS policy.
type qosFile struct {
	levels []qosLevel
	rules  []qosRule
	lines  []Line // of what is neither
	why    string // OpenSM ignores all of it
}

const (
	whyPortGroups = "service levels go by partitions and services; groups of ports stand in the policy's groups"
	whySetup      = "the tables of virtual lanes are those of settings, for all ports (docs/settings.md)"
	whySources    = "levels go by partition and service, not by who sends and who receives"
)

// readQoS reads a QoS policy. Everything of it has a place in the result.
func readQoS(content string) (q qosFile) {
	var open []string // sections
	var level *qosLevel
	var rule *qosRule
	for i, line := range strings.Split(content, "\n") {
		line, _, _ = strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		number := i + 1
		word := strings.ToLower(line) // OpenSM's keywords may be in any case
		in := ""
		if len(open) > 0 {
			in = open[len(open)-1]
		}
		switch {
		case line == "":
		case word == "end-"+in && in != "":
			open = open[:len(open)-1]
			if in == "qos-level" && level != nil {
				level.end, q.levels, level = number, append(q.levels, *level), nil
			}
			if in == "qos-match-rule" && rule != nil {
				rule.what = cmp.Or(rule.what, "a rule of nothing")
				rule.end, q.rules, rule = number, append(q.rules, *rule), nil
			}
		case slices.Contains(sections, word):
			open = append(open, word)
			switch word {
			case "qos-level":
				level = &qosLevel{line: number, sl: -1}
			case "qos-match-rule":
				rule = &qosRule{line: number, sl: -1}
			}
		case level != nil && in == "qos-level":
			level.field(line)
		case rule != nil && in == "qos-match-rule":
			rule.field(line)
		case in == "qos-ulps":
			q.rules = append(q.rules, ulp(number, line))
		default:
			why := "OpenSM reads no such line here"
			if slices.Contains(open, "port-groups") {
				why = whyPortGroups
			} else if slices.Contains(open, "qos-setup") {
				why = whySetup
			}
			q.lines = append(q.lines, Line{First: number, What: cut(line), Verdict: NotPossible, Why: why})
		}
	}
	if level != nil || rule != nil || len(open) > 0 {
		q.why = "OpenSM ignores the whole file, since a section is not closed"
		q.lines = append(q.lines, Line{First: strings.Count(content, "\n") + 1, What: "the end of the file"})
	}
	if i := slices.IndexFunc(q.levels, func(l qosLevel) bool { return strings.EqualFold(l.name, defaultLevel) }); i >= 0 {
		q.rules = append(q.rules, qosRule{line: q.levels[i].line, end: q.levels[i].end, what: "paths that no rule takes", level: q.levels[i].name, sl: -1, last: true})
	}
	slices.SortStableFunc(q.rules, func(a, b qosRule) int {
		switch {
		case a.last == b.last:
			return 0
		case b.last:
			return -1
		}
		return 1
	})
	if q.why == "" && !slices.ContainsFunc(q.rules, func(r qosRule) bool { return r.last && r.why == "" }) {
		q.why = whyNoDefault
	}
	return q
}

const whyNoDefault = "OpenSM ignores the whole file, since it has no default level"

// defaultLevel is the name of the level for what no rule takes.
const defaultLevel = "DEFAULT"

// sections are the words that begin one.
var sections = []string{"port-groups", "port-group", "qos-setup", "vlarb-tables", "vlarb-scope", "sl2vl-tables", "sl2vl-scope", "qos-levels", "qos-level", "qos-match-rules", "qos-match-rule", "qos-ulps"}

// field reads a line of a level.
func (l *qosLevel) field(line string) {
	key, value := keyAndValue(line)
	switch key {
	case "name":
		l.name = value
	case "use":
	case "sl":
		l.sl = levelOf(value)
	case "rate-limit":
		if n, err := strconv.ParseUint(value, 0, 8); err == nil && ib.Rate(n).IsValid() {
			l.rate = ib.Rate(n)
			return
		}
		l.lacks = append(l.lacks, key)
	default:
		l.lacks = append(l.lacks, cut(key))
	}
}

// field reads a line of a rule.
func (r *qosRule) field(line string) {
	key, value := keyAndValue(line)
	var ok bool
	switch key {
	case "use":
		ok = true
	case "qos-level-name":
		r.level, ok = value, value != ""
	case "pkey":
		r.pkeys, ok = intervals(value)
	case "service-id":
		r.services, ok = intervals(value)
	case "source", "destination", "qos-class":
		r.why = whySources
		return
	}
	if r.what = strings.TrimPrefix(r.what+", "+cut(line), ", "); !ok {
		r.why = fmt.Sprintf("%q is not understood", cut(line))
	}
}

// ulp reads a line of qos-ulps: PROTOCOL[, KEY RANGES] : LEVEL.
func ulp(number int, line string) qosRule {
	r := qosRule{line: number, end: number, what: cut(line), sl: -1}
	match, level, ok := cutLast(line, ":")
	r.sl = levelOf(level)
	name, condition, _ := strings.Cut(match, ",")
	name = strings.ToLower(strings.TrimSpace(name))
	key, list, _ := strings.Cut(strings.TrimSpace(condition), " ")
	key = strings.ToLower(key)
	list2, good := intervals(list)
	ports := func(base, port uint64) {
		if key == "" {
			r.services = []interval{{base + port, base + port}}
			if name == "sdp" {
				r.services[0].last = base + portMax
			}
			return
		}
		for _, x := range list2 {
			good = good && x.last <= portMax
			r.services = append(r.services, interval{base + x.first, base + x.last})
		}
	}
	switch {
	case !ok || r.sl < 0:
		r.why = "want PROTOCOL : LEVEL, with a level of 0 to 15"
	case name == "default" && key == "":
		r.last = true
	case name == "ipoib" && key == "":
		r.pkeys = []interval{{uint64(ib.PKeyBaseDefault), uint64(ib.PKeyBaseDefault)}}
	case (name == "ipoib" || name == "any") && key == "pkey" && good:
		r.pkeys = list2
	case name == "any" && key == "service-id" && good:
		r.services = list2
	case name == "sdp" && (key == "" || key == "port-num" && good):
		ports(serviceSDP, 0)
	case name == "rds" && (key == "" || key == "port-num" && good):
		ports(serviceIP, portRDS)
	case name == "iser" && (key == "" || key == "port-num" && good):
		ports(serviceIP, portISER)
	case key == "target-port-guid" || name == "srp":
		r.why = whySources
	default:
		r.why = fmt.Sprintf("%q is not understood", cut(line))
	}
	if !good && key != "" && r.why == "" {
		r.why = fmt.Sprintf("%q is not understood", cut(line))
	}
	return r
}

func keyAndValue(line string) (key, value string) {
	key, value, _ = strings.Cut(line, ":")
	return strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
}

func cutLast(s, sep string) (before, after string, ok bool) {
	at := strings.LastIndex(s, sep)
	if at < 0 {
		return s, "", false
	}
	return s[:at], s[at+len(sep):], true
}

// levelOf is a service level, -1 for none.
func levelOf(text string) int {
	n, err := strconv.ParseUint(strings.TrimSpace(text), 0, 8)
	if err != nil || n > policy.SLMax {
		return -1
	}
	return int(n)
}

// intervals reads numbers and ranges of them with commas between.
func intervals(text string) (out []interval, ok bool) {
	for item := range strings.SplitSeq(text, ",") {
		low, high, isRange := strings.Cut(strings.TrimSpace(item), "-")
		if !isRange {
			high = low
		}
		first, _, good := policy.ParseNumber(strings.TrimSpace(low))
		last, _, good2 := policy.ParseNumber(strings.TrimSpace(high))
		if !good || !good2 || first > last {
			return nil, false
		}
		out = append(out, interval{first, last})
	}
	return out, true
}

// qosPolicy puts what a QoS policy says into the policy.
func (m *migration) qosPolicy() error {
	t, ok := m.files[QoSPolicy]
	if !ok {
		return nil
	}
	var n policy.SourceNotes
	content := n.Clean(t.Data, ListSizeMax)
	if err := n.Err(t.Path); err != nil {
		return err
	}
	q := readQoS(content)
	lines := q.lines
	for i := range q.levels {
		l := &q.levels[i]
		out := Line{First: l.line, Last: l.end, What: "qos-level " + cut(l.name), Verdict: Taken, Becomes: "with the rules that name it"}
		if l.sl < 0 {
			out.Verdict, out.Becomes, out.Why = NotPossible, "", "it has no service level"
		}
		if len(l.lacks) > 0 {
			out.Why = strings.TrimPrefix(out.Why+"; not taken: "+strings.Join(l.lacks, ", "), "; ")
		}
		lines = append(lines, out)
	}
	for i := range q.rules {
		r := &q.rules[i]
		out := Line{First: r.line, Last: r.end, What: cut(r.what), Verdict: Taken}
		if q.why != "" {
			lines = append(lines, out)
			continue
		}
		if becomes, why := m.applyRule(&q, r); becomes == "" {
			out.Verdict, out.Why = NotPossible, why
		} else {
			out.Becomes, out.Why = becomes, why
		}
		lines = append(lines, out)
	}
	slices.SortStableFunc(lines, func(a, b Line) int { return a.First - b.First })
	for _, l := range lines {
		l.File = t.Path
		switch {
		case !m.conf.truth("qos"):
			l.Verdict, l.Becomes, l.Why = NotNeeded, "", whyNoQoS
		case q.why != "":
			l.Verdict, l.Becomes, l.Why = NotNeeded, "", q.why
		}
		m.say(l)
	}
	return nil
}

// applyRule changes the policy as a rule says: the first rule that takes a path counts. It gives
// what becomes of it, empty for nothing, and the reason.
func (m *migration) applyRule(q *qosFile, r *qosRule) (becomes, why string) {
	sl, rate := r.sl, ib.Rate(0)
	if r.why == "" && r.level != "" {
		i := slices.IndexFunc(q.levels, func(l qosLevel) bool { return l.name == r.level })
		if i < 0 {
			return "", "no level has this name"
		}
		sl, rate = q.levels[i].sl, q.levels[i].rate
	}
	switch {
	case r.why != "":
		return "", r.why
	case sl < 0:
		return "", "it names no service level"
	case !m.conf.truth("qos"):
		return "", whyNoQoS
	}
	if m.levelled == nil {
		m.levelled = map[ib.PKeyBase]bool{}
	}
	if sl != 0 && (r.pkeys == nil || within(r.pkeys, uint64(ib.PKeyBaseDefault))) {
		m.withDefault()
	}
	touched, refused := 0, ""
	for i := range m.Policy.Partitions {
		part := &m.Policy.Partitions[i]
		key := m.keyOf(part)
		if m.levelled[key] || r.pkeys != nil && !within(r.pkeys, uint64(key)) {
			continue
		}
		if r.services != nil {
			if rate != 0 {
				refused = "a rate limit is for all of a partition"
			}
			refused = addServices(part, r.services, ib.SL(sl), refused)
			touched++
			continue
		}
		m.levelled[key] = true
		part.SL = ib.SL(sl)
		for g := range part.Multicast {
			if part.Multicast[g].IsBroadcast() {
				part.Multicast[g].SL = part.SL
			}
		}
		if rate != 0 {
			refused = limitRate(part, rate, refused)
		}
		touched++
	}
	if touched == 0 {
		return "", "no partition has this P_Key, or an earlier rule has taken it"
	}
	becomes = fmt.Sprintf("sl: %d, in %d partitions", sl, touched)
	if r.services != nil {
		becomes = fmt.Sprintf("service_ids with sl: %d, in %d partitions", sl, touched)
	}
	if rate != 0 && r.services == nil {
		becomes += fmt.Sprintf(", rate_limit: %v", rate)
	}
	return becomes, refused
}

// limitRate limits a partition, unless one of its groups has a higher rate.
func limitRate(part *policy.Partition, rate ib.Rate, refused string) string {
	for _, g := range part.Multicast {
		if g.Rate.Tenths() > rate.Tenths() {
			return "the rate limit is below the rate of a multicast group of " + part.Name + ", and is not taken there"
		}
	}
	part.RateLimit = rate
	return refused
}

// addServices puts paths to services on a level, as far as no earlier rule does.
func addServices(part *policy.Partition, services []interval, sl ib.SL, refused string) string {
	for _, x := range services {
		entry := policy.ServiceLevel{ServiceRange: observed.ServiceRange{First: x.first, Last: x.last, SL: sl}}
		switch {
		case policy.Covered(part.ServiceLevels, entry) >= 0:
			refused = "service IDs of an earlier rule keep their level"
		case len(part.ServiceLevels) == policy.ServiceLevelsMax:
			refused = fmt.Sprintf("at most %d ranges of service IDs in a partition", policy.ServiceLevelsMax)
		default:
			part.ServiceLevels = append(part.ServiceLevels, entry)
		}
	}
	return refused
}

// within reports whether a number is in one of the intervals. P_Keys count without their
// highest bit.
func within(list []interval, key uint64) bool {
	return slices.ContainsFunc(list, func(x interval) bool {
		full := key | 0x8000
		return x.first <= key && key <= x.last || x.first <= full && full <= x.last
	})
}

// keyOf is the number of a partition, also where the file left it to OpenSM.
func (m *migration) keyOf(part *policy.Partition) ib.PKeyBase {
	if part.PKey != 0 {
		return part.PKey
	}
	return m.numbers[part.Name]
}

// withDefault has the policy name the default partition, which then can have a level.
func (m *migration) withDefault() {
	for i := range m.Policy.Partitions {
		if m.Policy.Partitions[i].PKey == ib.PKeyBaseDefault {
			return
		}
	}
	m.Policy.Partitions = append(m.Policy.Partitions, policy.Partition{Name: policy.DefaultName, PKey: ib.PKeyBaseDefault})
}
