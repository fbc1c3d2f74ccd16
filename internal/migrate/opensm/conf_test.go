package opensm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// dumped has OpenSM read a file and write what it made of it, by option; nil where it died of that.
func dumped(t *testing.T, conf string) map[string]string {
	t.Helper()
	program := need.Program(t, "opensm")
	dir := t.TempDir()
	out := filepath.Join(dir, "out.conf")
	line := []string{"-c", out}
	if conf != "" {
		in := filepath.Join(dir, "in.conf")
		if err := os.WriteFile(in, []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		line = append(line, "-F", in)
	}
	c := exec.CommandContext(t.Context(), program, line...)
	c.WaitDelay = time.Second
	said, err := c.CombinedOutput()
	if c.ProcessState != nil && c.ProcessState.ExitCode() < 0 && t.Context().Err() == nil {
		return nil // some values kill OpenSM (a segmentation fault)
	}
	if err != nil {
		t.Fatalf("opensm: %v: %s", err, said)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return values(string(text))
}

// values are the options of a text that opensm -c has written.
func values(text string) map[string]string {
	m := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if _, again := m[name]; !again { // options of each level come several times
			m[name] = value
		}
	}
	return m
}

// TestOptionsAreOpenSMs: the options that are known here, and their defaults, are those that
// opensm writes, and those of the file that stands for it where it is missing.
func TestOptionsAreOpenSMs(t *testing.T) {
	text, err := os.ReadFile("testdata/default.conf")
	if err != nil {
		t.Fatal(err)
	}
	for name, all := range map[string]map[string]string{"testdata": values(string(text)), "opensm": dumped(t, "")} {
		if len(all) < 150 {
			t.Errorf("%s: %d options", name, len(all))
		}
		for option, value := range all {
			s, ok := known[option]
			if !ok {
				t.Errorf("%s: option %s is not known", name, option)
			} else if s.def != value && !(s.kind == perLevel && value == s.def) {
				t.Errorf("%s: default of %s is %q, known as %q", name, option, value, s.def)
			}
		}
		for _, s := range specs {
			if _, ok := all[s.name]; !ok && s.name != "dimn_ports_file" {
				t.Errorf("%s does not have %s", name, s.name)
			}
		}
	}
}

// TestListsAreOfOptions: what is said of options is said of those that there are, and of others
// that there are not.
func TestListsAreOfOptions(t *testing.T) {
	for name := range fixedOptions {
		if _, ok := known[name]; !ok || decided[name] != nil {
			t.Errorf("%s has two answers, or is no option", name)
		}
	}
	for name := range decided {
		if _, ok := known[name]; !ok {
			t.Errorf("%s is no option", name)
		}
	}
	for name := range closed {
		if _, ok := known[name]; ok {
			t.Errorf("%s is an option of the open OpenSM", name)
		}
	}
	for _, d := range defaultsMatter {
		if _, ok := known[d.Option]; !ok {
			t.Errorf("%s is no option", d.Option)
		}
	}
}

// TestDefaultsSayNothing: of the file that opensm writes no line needs a verdict.
func TestDefaultsSayNothing(t *testing.T) {
	text, err := os.ReadFile("testdata/default.conf")
	if err != nil {
		t.Fatal(err)
	}
	r := migrated(t, string(text), "A=1 : ALL;\n")
	for _, l := range r.Lines {
		if l.File == "opensm.conf" {
			t.Errorf("%s: %s: %s", l.Place(), l.What, l.Verdict)
		}
	}
	if r.AtDefault != strings.Count(string(text), "\n") {
		t.Errorf("%d lines at their default of %d", r.AtDefault, strings.Count(string(text), "\n"))
	}
	if len(r.Defaults) != len(defaultsMatter) {
		t.Errorf("%d defaults matter, want %d", len(r.Defaults), len(defaultsMatter))
	}
}

// migrated is what becomes of an opensm.conf and a partitions.conf.
func migrated(t *testing.T, conf, partitions string) *Report {
	t.Helper()
	c, err := ReadConf(Text{"opensm.conf", []byte(conf)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Migrate(c, map[Kind]Text{Partitions: {"partitions.conf", []byte(partitions)}}, Options{PolicyPath: "/x/policy.yaml", MKeyPath: "/x/m_key"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// settingOf is the value that a configuration has under a key; empty for none.
func settingOf(r *Report, key string) string {
	for _, s := range r.Configuration {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}

func TestRouting(t *testing.T) {
	for conf, want := range map[string]string{
		"":                                  "",
		"routing_engine (null)":             "",
		"routing_engine minhop":             "minhop",
		"routing_engine ftree":              "ftree,updn",
		"routing_engine \"ftree, updn\"":    "ftree,updn",
		"routing_engine ftree,minhop":       "ftree,minhop",
		"routing_engine ftree,no_fallback":  "ftree",
		"routing_engine torus-2QoS":         "dor,updn",
		"routing_engine lash,sssp":          "dfsssp",
		"routing_engine nue":                "dfsssp,updn",
		"routing_engine dnup":               "updn",
		"routing_engine file":               "",
		"routing_engine ftre":               "",
		"routing_engine file\nlfts_file /x": "file,updn",
	} {
		r := migrated(t, conf, "A=1 : ALL;\n")
		if got := settingOf(r, "routing"); got != want {
			t.Errorf("%s: %s, want %s", conf, got, want)
		}
		if file := settingOf(r, "lfts-file"); (file == "/x") != strings.Contains(conf, "lfts_file") {
			t.Errorf("%s: lfts-file %s", conf, file)
		}
	}
}

// TestSettings: what opensm.conf says of ports is in the policy.
func TestSettings(t *testing.T) {
	r := migrated(t, "packet_life_time 0x11\nhead_of_queue_lifetime 0x0e\nmax_op_vls 3\nqos TRUE\nqos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3\n"+
		"qos_vlarb_low 0:8,1:8,2:8,3:8\nqos_ca_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3\nqos_swe_high_limit 3\npart_enforce in\nforce_link_width 3\nforce_link_speed_ext 30\nsubnet_timeout 19\n", "A=1,sl=3 : ALL;\n")
	text := string(r.PolicyText())
	for _, want := range []string{"packet_life_time: 17", "head_of_queue_lifetime: 14", "max_op_vls: 3", "qos: true", `qos_sl2vl: "0,1,2,3,0,1,2,3`, `qos_vlarb_low: "0:8,1:8,2:8,3:8"`,
		"part_enforce: in", "link_width: 4x", "link_speed: qdr", "subnet_timeout: 19", "sl: 3"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if n := r.Count(NotPossible); n != 1 {
		t.Errorf("%d lines are not possible, want that of switch ports: %+v", n, r.Lines)
	}
	// A VL that would never be served is not taken, nor is a table without the others.
	r = migrated(t, "qos TRUE\nqos_vlarb_low 0:8\nqos_high_limit 4\n", "A=1 : ALL;\n")
	if text := string(r.PolicyText()); strings.Contains(text, "vlarb") || strings.Contains(text, "high_limit") || r.Count(NotPossible) != 2 {
		t.Errorf("%+v\n%s", r.Lines, text)
	}
}

// tried are values that are good or bad for some option.
var tried = []string{
	"0", "1", "2", "3", "5", "7", "8", "9", "15", "16", "17", "30", "31", "32", "40", "77", "99", "127", "128", "254", "255", "256", "300", "4096", "65535", "65536", "99999999",
	"4294967295", "4294967296", "18446744073709551615", "18446744073709551616", "-1", "-5", "+5", "010", "08", "0x", "0x10", "0XfF", "0xZZ", "7junk", "1.5", "",
	"TRUE", "FALSE", "true", "yes", "\"TRUE\"", "'FALSE'", "TRUE x", "both", "in", "out", "off", "OUT", "local", "loopback", "socket", "(null)",
	"updn,ftree", "\"a b\"", "'a", "a#b", "a # b", "\ta\t", "0:4,1:0", "0,1,2,3,4,5,6,7,0,1,2,3,4,5,6,7", "/etc/x", "\"",
}

// TestEveryOptionHasAnAnswer: each option with each value has a verdict, with a reason or with
// what it becomes, or means the default.
func TestEveryOptionHasAnAnswer(t *testing.T) {
	for _, s := range append(specs[:len(specs):len(specs)], spec{name: "m_key_per_port"}, spec{name: "sm_prority"}) {
		values := tried
		if s.kind == flag && s.name != "" && s.def != "" {
			values = []string{"TRUE", "FALSE", "true", ""}
		}
		for _, v := range values {
			for _, more := range []string{"", "\nqos TRUE\nm_key 5\nlmc 1\nperfmgr TRUE\ncongestion_control TRUE\n"} {
				if s.name == "partition_config_file" {
					continue // TestMigrateRefuses
				}
				r := migrated(t, s.name+" "+v+more, "A=1 : ALL;\n")
				for _, l := range r.Lines {
					if l.Verdict == "" || l.What == "" || l.Becomes == "" && l.Why == "" || l.Verdict == NotPossible && l.Why == "" {
						t.Fatalf("%s %s: %+v", s.name, v, l)
					}
				}
			}
		}
	}
}

// TestValuesAreAsOpenSMReadsThem has OpenSM read random files, and write what it made of them.
func TestValuesAreAsOpenSMReadsThem(t *testing.T) {
	seed := need.Seed(t, 1)
	random := rand.New(rand.NewPCG(seed, 0))
	compared := 0
	for range need.Rounds(20, 1000) {
		var b strings.Builder
		for range 80 {
			s := specs[random.IntN(len(specs))]
			if s.kind == perLevel {
				continue // one line a level: they are not taken over anyway
			}
			fmt.Fprintf(&b, "%s%s%s%s%s\n", []string{"", " ", "\t"}[random.IntN(3)], s.name, []string{" ", "\t", "  "}[random.IntN(3)],
				tried[random.IntN(len(tried))], []string{"", " ", "\r", " # x"}[random.IntN(4)])
		}
		c, err := ReadConf(Text{"in.conf", []byte(b.String())})
		if err != nil {
			t.Fatal(err)
		}
		theirs := dumped(t, b.String())
		for _, s := range specs {
			want, dumps := theirs[s.name]
			if !dumps || derived[s.name] || strings.HasPrefix(s.name, "cc_") || s.kind == i32 && !c.truth("qos") { // a limit is looked at with qos only
				continue
			}
			compared++
			got := c.value(s.name)
			if clamped[s.name].above > 0 {
				got = fmt.Sprint(c.number(s.name))
			}
			if !s.same(got, want) {
				t.Fatalf("seed %d: %s is %q here, and %q to OpenSM, in\n%s", seed, s.name, got, want, b.String())
			}
		}
	}
	if compared < 1000 {
		t.Errorf("%d values compared", compared)
	}
}

// derived are options that OpenSM changes with the value of others. Those of congestion control it
// writes in another form; neither is taken over.
var derived = map[string]bool{
	"long_transaction_timeout": true, "max_wire_smps2": true, "m_key_lease_period": true, "qos_max_vls": true, "qos_ca_max_vls": true,
	"qos_sw0_max_vls": true, "qos_swe_max_vls": true, "qos_rtr_max_vls": true, "port_search_ordering_file": true, "part_enforce": true, "scatter_ports": true,
}

// same reports whether two texts are one value.
func (s *spec) same(a, b string) bool {
	switch s.kind {
	case text:
		return a == b || s.def == null && (a == "" || b == "") && (a == b || a == null || b == null)
	case flag:
		return (a == "TRUE") == (b == "TRUE")
	}
	x, ok := s.number(a)
	y, ok2 := s.number(b)
	return ok && ok2 && x == y
}
