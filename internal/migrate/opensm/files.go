package opensm

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// Kind is what a file is to OpenSM: the name that it has by default, or the option that names it.
type Kind string

// The files that are read.
const (
	Partitions    Kind = "partitions.conf"
	QoSPolicy     Kind = "qos-policy.conf"
	PrefixRoutes  Kind = "prefix-routes.conf"
	Torus         Kind = "torus-2QoS.conf"
	NodeNameMap   Kind = "ib-node-name-map"
	ModuleLogging Kind = "per-module-logging.conf"
	Roots         Kind = "root_guid_file"
	ComputeNodes  Kind = "cn_guid_file"
	IONodes       Kind = "io_guid_file"
	IDs           Kind = "ids_guid_file"
	RoutingOrder  Kind = "guid_routing_order_file"
	HopWeights    Kind = "hop_weights_file"
	PortOrder     Kind = "port_search_ordering_file"
	ProfileIgnore Kind = "port_prof_ignore_file"
	GUIDToLID     Kind = "guid2lid"
	GUIDToMKey    Kind = "guid2mkey"
	Neighbors     Kind = "neighbors"
)

// ListSizeMax is the largest of these files that is read, but for partitions.conf, in bytes.
const ListSizeMax = 64 << 20

// listing is what becomes of the lines of a file that is a list.
type listing struct {
	kind   Kind
	option string
	// standard is where OpenSM looks if the option says nothing; empty for nowhere.
	standard string
	verdict  Verdict
	why      string
	// words says which words a line has, for lines that have others; nil takes any.
	words func([]string) bool
	want  string
}

// listings are the lists, in the order of a report.
var listings = []listing{
	{Roots, "root_guid_file", "", NotNeeded, whyLevels, someGUID, "a GUID"},
	{ComputeNodes, "cn_guid_file", "", NotNeeded, "ftree takes hosts at any level, and every pair of ports has a route", someGUID, "a GUID"},
	{IONodes, "io_guid_file", "", NotNeeded, "ftree takes hosts at any level, and every pair of ports has a route", someGUID, "a GUID"},
	{IDs, "ids_guid_file", "", NotNeeded, "switches are told apart by their GUIDs", someGUID, "a GUID and a number"},
	{RoutingOrder, "guid_routing_order_file", "", NotPossible, whyBalance, someGUID, "a GUID"},
	{HopWeights, "hop_weights_file", "", NotPossible, "every cable counts as one hop (ibwarden drain takes a switch out of the routes)", someGUID, "a GUID, a port and a weight"},
	{PortOrder, "port_search_ordering_file", "", NotPossible, "dor finds the dimensions in the graph, and other engines take ports in the order of their numbers", someGUID, "a GUID and ports"},
	{ProfileIgnore, "port_prof_ignore_file", "", NotPossible, whyBalance, someGUID, "a GUID"},
	{Torus, "torus_config", "/etc/opensm/torus-2QoS.conf", NotNeeded, "dor finds the dimensions in the graph", nil, ""},
	{PrefixRoutes, "prefix_routes_file", "/etc/opensm/prefix-routes.conf", NotPossible, "subnet administration answers for paths within the subnet only", nil, ""},
	{NodeNameMap, "node_name_map_name", "/etc/opensm/ib-node-name-map", NotPossible, "devices are named by the description that they give themselves; ibwarden device led and topology go by it, or by GUID", someGUID, "a GUID and a name"},
	{ModuleLogging, "per_module_logging_file", "/etc/opensm/per-module-logging.conf", NotNeeded, "log-level is for all of ibwarden (docs/logs.md)", nil, ""},
}

// someGUID reports whether a line begins with a GUID.
func someGUID(words []string) bool {
	_, ok := guid(words[0])
	return ok
}

func guid(word string) (uint64, bool) {
	n, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimPrefix(word, "0x"), "0X"), 16, 64)
	return n, err == nil && n != 0
}

// fileOption is an option that names a file.
type fileOption struct {
	kind    Kind
	verdict Verdict
	why     string
}

// fileOptions are the options that name files.
var fileOptions = func() map[string]fileOption {
	m := map[string]fileOption{
		"dimn_ports_file":      {PortOrder, NotPossible, "an older name of port_search_ordering_file; dor finds the dimensions in the graph"},
		"qos_policy_file":      {QoSPolicy, Taken, "its lines say what becomes of them"},
		"lfts_file":            {"", NotNeeded, "routing_engine has no file"},
		"lid_matrix_dump_file": {"", NotPossible, "hop tables are not read: nothing rests on them"},
		"sa_db_file":           {"", NotPossible, "what hosts registered is not taken over: they are asked to register again"},
	}
	for _, l := range listings {
		m[l.option] = fileOption{l.kind, l.verdict, l.why}
	}
	return m
}()

func (m *migration) fileOption(o *option, f fileOption) answer {
	if o.name == "lfts_file" && routesFromFile(m.conf) {
		return m.set(o, "lfts-file", o.value)
	}
	if o.name == "qos_policy_file" && !m.conf.truth("qos") {
		return without(whyNoQoS)
	}
	a := answer{verdict: f.verdict, why: f.why}
	if _, read := m.files[f.kind]; f.kind != "" && !read {
		a.verdict, a.why = NotPossible, "the file is not there; "+f.why
	}
	return a
}

// routesFromFile reports whether the engine file is in the chain.
func routesFromFile(c *Conf) bool {
	for _, name := range strings.FieldsFunc(c.text("routing_engine"), func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
		if name == "file" {
			return true
		}
	}
	return false
}

// Wanted is a file that OpenSM reads.
type Wanted struct {
	Kind Kind
	// Path is what opensm.conf says, or where OpenSM looks; empty for a file of its cache.
	Path string
	// Named reports whether opensm.conf says it.
	Named bool
}

// Files are the files that OpenSM reads, beside opensm.conf.
func (c *Conf) Files() []Wanted {
	var out []Wanted
	add := func(k Kind, option, standard string) {
		path, named := c.text(option), c.isSet(option)
		if path == "" {
			path = standard
		}
		if path != "" {
			out = append(out, Wanted{k, path, named})
		}
	}
	add(Partitions, "partition_config_file", "")
	add(QoSPolicy, "qos_policy_file", "")
	for _, l := range listings {
		add(l.kind, l.option, l.standard)
	}
	if c.isSet("dimn_ports_file") && !c.isSet("port_search_ordering_file") {
		add(PortOrder, "dimn_ports_file", "")
	}
	for _, k := range []Kind{GUIDToLID, GUIDToMKey, Neighbors} {
		out = append(out, Wanted{Kind: k})
	}
	return out
}

// lists says what becomes of the lines of all lists.
func (m *migration) lists() error {
	for i := range listings {
		l := &listings[i]
		t, ok := m.files[l.kind]
		if !ok {
			continue
		}
		err := m.list(t, ListSizeMax, func(line int, words []string) (Line, bool) {
			out := Line{What: string(l.kind), Verdict: l.verdict, Why: l.why}
			if l.words != nil && !l.words(words) {
				out.Verdict, out.Why = NotNeeded, "OpenSM finds no "+strings.TrimPrefix(l.want, "a ")+" here"
				return out, true
			}
			if n, ok := guid(words[0]); ok && l.kind == Roots {
				m.RootGUIDs = append(m.RootGUIDs, n)
			}
			return out, true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// list says what becomes of the lines of a file that mean something, each line that follows
// one with the same answer together with it.
func (m *migration) list(t Text, sizeMax int, answer func(line int, words []string) (Line, bool)) error {
	var n policy.SourceNotes
	content := n.Clean(t.Data, sizeMax)
	if err := n.Err(t.Path); err != nil {
		return err
	}
	var last *Line
	for i, line := range strings.Split(content, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		l, ok := answer(i+1, words)
		if !ok {
			continue
		}
		l.File, l.First, l.Last = t.Path, i+1, i+1
		if last != nil && last.What == l.What && last.Verdict == l.Verdict && last.Becomes == l.Becomes && last.Why == l.Why {
			last.Last = l.Last
			last.lines++
			continue
		}
		l.lines = 1
		m.Lines = append(m.Lines, l)
		last = &m.Lines[len(m.Lines)-1]
	}
	return nil
}

// fault is the error of one place.
func fault(path string, line int, expected, format string, args ...any) error {
	return &policy.Error{Name: path, Faults: []policy.Fault{{Pos: policy.Pos{Line: line, Column: 1}, Found: fmt.Sprintf(format, args...), Expected: expected}}}
}
