package opensm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// migration is a Report in the making.
type migration struct {
	Report
	conf     *Conf
	files    map[Kind]Text
	options  Options
	settings policy.Settings
	// laneFaults are the options of virtual lanes that are not taken, and why; nil before
	// they were looked at.
	laneFaults map[string]string
	// numbers are those that OpenSM gives to partitions which state none, by name; levelled
	// are the partitions that a rule of the QoS policy has put on a level.
	numbers  map[string]ib.PKeyBase
	levelled map[ib.PKeyBase]bool
}

// Options are what the caller decides.
type Options struct {
	// PolicyPath and MKeyPath are where the policy and the M_Key will stand, for the
	// configuration.
	PolicyPath, MKeyPath string
	// DataDir is the data directory that is written; empty for none.
	DataDir string
}

// answer is what becomes of an option.
type answer struct {
	verdict      Verdict
	becomes, why string
}

func no(why string) answer      { return answer{verdict: NotPossible, why: why} }
func without(why string) answer { return answer{verdict: NotNeeded, why: why} }

// set adds an entry of the configuration that an option becomes.
func (m *migration) set(o *option, key, value string) answer {
	m.configure(key, value, value, fmt.Sprintf("%s:%d %s", m.conf.path, o.line, o.name))
	return answer{verdict: Taken, becomes: key + ": " + value}
}

func (m *migration) configure(key, value, shown, from string) {
	m.Configuration = append(m.Configuration, Setting{key, value, shown, from})
}

// hidden is set for a key.
func (m *migration) hidden(o *option, key string, value string) answer {
	m.configure(key, value, "(a key)", fmt.Sprintf("%s:%d %s", m.conf.path, o.line, o.name))
	return answer{verdict: Taken, becomes: key}
}

// setting is an entry of the policy's settings.
func setting(name string, value any) answer {
	return answer{verdict: Taken, becomes: fmt.Sprintf("settings: {%s: %v}", name, value)}
}

// decide says what becomes of every line of opensm.conf.
func (m *migration) decide() {
	for i := range m.conf.options {
		o := &m.conf.options[i]
		if a := m.answer(o); a.verdict != "" {
			m.say(Line{File: m.conf.path, First: o.line, What: o.shown(), Verdict: a.verdict, Becomes: a.becomes, Why: a.why})
		}
	}
	for _, d := range defaultsMatter {
		if !m.conf.isSet(d.Option) {
			d.Value = m.conf.value(d.Option)
			if s := known[d.Option]; s.secret {
				d.Value = s.def
			}
			m.Defaults = append(m.Defaults, d)
		}
	}
	if m.conf.number("lmc") > 0 && !m.conf.truth("lmc_esp0") {
		m.Defaults = append(m.Defaults, Default{"lmc_esp0", "FALSE", "OpenSM gives enhanced switch ports 0 one LID; ibwarden gives them as many as other ports, so that their LIDs may change"})
	}
	if m.conf.truth("qos") && !m.conf.isSet("qos_vlarb_low") && !m.conf.isSet("qos_vlarb_high") {
		m.Defaults = append(m.Defaults, Default{"qos_vlarb_low", m.conf.value("qos_vlarb_low"), "OpenSM gives VL 0 the high-priority table and every other VL the weight 4; ibwarden gives every VL the weight 64 (docs/settings.md)"})
	}
}

func (m *migration) answer(o *option) answer {
	s, ok := known[o.name]
	switch {
	case !ok:
		return unknown(o.name)
	case o.ignored != "":
		return without(o.ignored)
	case s.isDefault(o.value):
		m.AtDefault++
		return answer{}
	case o.overruled != 0:
		return without(fmt.Sprintf("line %d says it again, and the last counts", o.overruled))
	}
	if strings.HasPrefix(o.name, "cc_") && !m.conf.truth("congestion_control") {
		return without(whyCCOff)
	}
	if f, ok := fixedOptions[o.name]; ok {
		return answer{verdict: f.verdict, why: f.why}
	}
	if strings.HasPrefix(o.name, "cc_") {
		return no(whyCC)
	}
	if d, ok := decided[o.name]; ok {
		return d(m, o)
	}
	if k, ok := fileOptions[o.name]; ok {
		return m.fileOption(o, k)
	}
	if strings.HasPrefix(o.name, "qos_") {
		return m.lanes(o)
	}
	panic("no answer for option " + o.name) // TestEveryOptionHasAnAnswer
}

// unknown is the answer for a name that OpenSM does not know.
func unknown(name string) answer {
	if why, ok := closed[name]; ok {
		return no("only NVIDIA's closed OpenSM has this option: " + why)
	}
	if len(name) > 1 && strings.ContainsAny(name, "=:") {
		return no("OpenSM knows no such option and ignores the line; a blank parts name and value")
	}
	return no("OpenSM 3.3.23 knows no such option and ignores the line: a misspelling, or an option of NVIDIA's closed OpenSM")
}

// engines are OpenSM's routing engines: those of the same name here, and what comes nearest to
// the others.
var engines = map[string]struct{ here, why string }{
	"minhop":     {"minhop", ""},
	"updn":       {"updn", ""},
	"ftree":      {"ftree", ""},
	"dor":        {"dor", ""},
	"dfsssp":     {"dfsssp", ""},
	"file":       {"file", ""},
	"dnup":       {"updn", "dnup is not here; updn has every pair of ports reach each other, hosts nearer to the top included"},
	"sssp":       {"dfsssp", "sssp is not here; dfsssp balances alike, and cannot deadlock"},
	"lash":       {"dfsssp", "lash is not here; dfsssp has shortest paths on any graph, and cannot deadlock"},
	"nue":        {"dfsssp,updn", "nue is not here; dfsssp and updn cannot deadlock either"},
	"torus-2QoS": {"dor", "torus-2QoS is not here; dor routes tori and meshes around what is broken, and cannot deadlock; it reads no torus-2QoS.conf, since it finds the dimensions in the graph"},
}

// anyGraph are the engines that refuse no graph, so that none after them is asked.
var anyGraph = []string{"minhop", "updn", "dfsssp"}

// routing decides on the chain of routing engines.
func (m *migration) routing(o *option) answer {
	var chain, why []string
	add := func(names string) {
		for name := range strings.SplitSeq(names, ",") {
			if !slices.Contains(chain, name) {
				chain = append(chain, name)
			}
		}
	}
	fallback, nearest := true, false
	for _, name := range strings.FieldsFunc(o.value, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		e, ok := engines[name]
		switch {
		case name == "no_fallback":
			fallback = false
		case !ok:
			why = append(why, fmt.Sprintf("OpenSM has no engine %s either", cut(name)))
		case name == "file" && m.conf.text("lfts_file") == "":
			why = append(why, "file is left out: there is no lfts_file")
		default:
			if e.why != "" {
				nearest, why = true, append(why, e.why)
			}
			add(e.here)
		}
	}
	last := len(chain) - 1
	switch {
	case len(chain) == 0 && len(why) > 0:
		return no(strings.Join(why, "; ") + "; ibwarden's default is updn")
	case len(chain) == 0:
		return without("no engine is named; ibwarden's default is updn")
	case !fallback:
		why = append(why, "no_fallback: an engine that refuses the fabric has no other in its place here either")
	case !slices.Contains(anyGraph, chain[last]):
		why = append(why, "OpenSM falls back to minhop, whose routes can deadlock; here updn comes last, which takes any fabric and cannot")
		add("updn")
	case chain[last] == "minhop":
		why = append(why, "routes of minhop can deadlock where the cabling has loops")
	}
	a := m.set(o, "routing", strings.Join(chain, ","))
	if a.why = strings.Join(why, "; "); nearest {
		a.verdict = NotPossible
	}
	return a
}
