package opensm

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// open is what OpenSM does without a partitions.conf.
const open = "Default=0x7fff,ipoib : ALL=full;\n"

// Migrate says what becomes of an OpenSM with these files. The error is a *policy.Error with
// every fault of one file: then there is nothing to write.
func Migrate(c *Conf, files map[Kind]Text, o Options) (*Report, error) {
	m := &migration{conf: c, files: files, options: o, settings: policy.DefaultSettings()}
	m.Lines, m.Defaults, m.Announced = []Line{}, []Default{}, []string{}
	m.configure("fabric", "umad", "umad", "the first InfiniBand port of this host, or that of guid")
	m.configure("policy", o.PolicyPath, o.PolicyPath, "what partitions.conf and the settings of ports become")
	if o.DataDir != "" {
		m.configure("data", o.DataDir, o.DataDir, "--write-data")
	}
	if !c.isSet("sm_key") {
		m.configure("sm-key", "1", "1", "OpenSM's default: an OpenSM that stays as standby ignores managers with another one")
	}
	m.decide()
	for _, step := range []func() error{m.partitions, m.qosPolicy, m.lists, m.cache} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return &m.Report, m.check()
}

// partitions turns partitions.conf into the policy.
func (m *migration) partitions() error {
	t, ok := m.files[Partitions]
	if !ok {
		if m.conf.isSet("partition_config_file") {
			return fault(m.conf.path, m.conf.options[m.conf.last["partition_config_file"]].line, "a file: OpenSM goes on without it, and every port is a full member of the default partition",
				"partition_config_file, which is not there")
		}
		m.Open = true
		t = Text{Path: "(no partitions.conf)", Data: []byte(open)}
	}
	p, statements, err := policyfile.ReadStatements(t.Data, t.Path, policyfile.Options{AllowBoth: m.conf.truth("allow_both_pkeys"), IgnoreLevels: !m.conf.truth("qos")})
	if err != nil {
		return err
	}
	p.Source = ""
	if s, usual := m.settings, policy.DefaultSettings(); !s.Equal(&usual) {
		p.Settings = &s
	}
	m.Policy, m.numbers = p, map[string]ib.PKeyBase{}
	for _, s := range statements {
		if s.Auto {
			m.numbers[s.Name] = s.PKey
		}
	}
	if !m.Open {
		m.statements(t.Path, statements)
	}
	m.announce()
	return nil
}

// statements says what becomes of each definition.
func (m *migration) statements(path string, statements []policyfile.Statement) {
	first := len(m.Lines)
	for _, s := range statements {
		what := fmt.Sprintf("%s=%v", s.Name, s.PKey)
		if s.Auto {
			what = s.Name
		}
		what += fmt.Sprintf(", members: %d", s.Members)
		if s.Groups > 0 {
			what += fmt.Sprintf(", multicast groups: %d", s.Groups)
		}
		becomes := fmt.Sprintf("partition %s", s.Name)
		m.say(Line{File: path, First: s.Pos.Line, Last: s.Last, What: cut(what), Verdict: Taken, Becomes: cut(becomes)})
	}
	for _, w := range m.Policy.Warnings {
		for i := len(statements) - 1; i >= 0; i-- {
			s := &statements[i]
			if w.Pos.Line > s.Pos.Line || w.Pos.Line == s.Pos.Line && w.Pos.Column >= s.Pos.Column || i == 0 {
				l := &m.Lines[first+i]
				l.Why = strings.TrimPrefix(l.Why+"; "+w.Found, "; ")
				break
			}
		}
	}
}

// announce says where ibwarden's tables differ from OpenSM's, whatever line it comes from.
func (m *migration) announce() {
	add := func(format string, args ...any) { m.Announced = append(m.Announced, fmt.Sprintf(format, args...)) }
	if m.Open {
		add("there is no partitions.conf: every port is a full member of the default partition, and everybody reaches everybody, as under OpenSM")
	}
	add("the switch port before a limited member holds the full P_Key of the partition, where OpenSM copies the limited one, with which a switch that checks as the architecture says would drop the packets of limited members")
	if m.conf.truth("allow_both_pkeys") {
		add("with allow_both_pkeys OpenSM leaves index 0 of the tables empty; here the key of the default partition is at index 0")
	}
	if first := m.indexes0(); len(first) > 1 {
		add("partitions %s have indx0: of several for one port OpenSM gives index 0 to the last of them, and ibwarden refuses the policy", cut(strings.Join(first, ", ")))
	}
	add("a policy that does not fit a table is refused, where OpenSM leaves out keys, or stops checking at the switch port")
}

// indexes0 are the partitions whose keys are to stand at index 0.
func (m *migration) indexes0() (names []string) {
	for i := range m.Policy.Partitions {
		x := &m.Policy.Partitions[i]
		if slices.ContainsFunc(x.Members, func(y policy.Member) bool { return y.Index0 }) {
			names = append(names, x.Name)
		}
	}
	return names
}

// check reads the policy as it will be written.
func (m *migration) check() error {
	text := policyfile.WriteYAML(m.Policy)
	_, err := policyfile.ReadYAML(text, "the policy that partitions.conf becomes")
	return err
}

// PolicyText is the policy as a file.
func (r *Report) PolicyText() []byte {
	return append([]byte("# What OpenSM's partitions.conf and settings of ports become; written by ibwarden migrate opensm.\n"), policyfile.WriteYAML(r.Policy)...)
}

// partitionFile is for the option that names partitions.conf.
func (m *migration) partitionFile(*option) answer {
	return answer{verdict: Taken, becomes: "policy: " + m.options.PolicyPath}
}
