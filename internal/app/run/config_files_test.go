package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/spf13/pflag"
)

// values are what the flags of these tests set.
type values struct {
	text, key string
	level     uint8
	count     int
	wait      time.Duration
	on, once  bool
	list      []string
}

func flags() (*pflag.FlagSet, *values) {
	v, f := new(values), pflag.NewFlagSet("", pflag.ContinueOnError)
	f.StringVar(&v.text, "fabric", "sim", "a text")
	f.StringVar(&v.key, "sm-key", "0", "a secret")
	f.Uint8Var(&v.level, "priority", 0, "0 to 15")
	f.IntVar(&v.count, "max-smps", 0, "a number")
	f.DurationVar(&v.wait, "sweep-interval", 10*time.Second, "a time")
	f.BoolVar(&v.on, "read-only", false, "a truth")
	f.BoolVar(&v.once, "once", false, "of one run")
	f.StringSliceVar(&v.list, "trusted-sm", nil, "a list")
	return f, v
}

// filesIn writes files below a new directory and returns the path of the first.
func filesIn(t *testing.T, of ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, Directory), 0o755); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(of); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, of[i]), []byte(of[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, of[0])
}

func read(t *testing.T, path string) (*Settings, error) {
	t.Helper()
	scratch, _ := flags()
	return Read(path, scratch)
}

// TestOrder: flags count before the environment, this before conf.d, its later files before
// its earlier ones, these before the file, and that before the default.
func TestOrder(t *testing.T) {
	path := filesIn(t, "a.yaml", "fabric: file\npriority: 1\nmax-smps: 1\nsweep-interval: 1s\ntrusted-sm: [a, \"b,c\"]\n",
		"conf.d/20.yaml", "priority: 3\n", "conf.d/10.yaml", "priority: 2\nmax-smps: 2\nsweep-interval: 2s\n",
		"conf.d/30.yaml.dpkg-old", "priority: 9\n", "conf.d/.hidden.yaml", "priority: 9\n")
	s, err := read(t, path)
	if err != nil {
		t.Fatal(err)
	}
	f, v := flags()
	if err := f.Parse([]string{"--sweep-interval", "5s"}); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TEST_SMPS", "7")
	v.count = 7 // as who defines the flag takes it from the variable
	for name, want := range map[string]bool{"fabric": true, "priority": true, "sweep-interval": false, "max-smps": false, "read-only": false} {
		if got := s.Counts(f.Lookup(name), Environment{"max-smps": "TEST_SMPS", "fabric": "TEST_UNSET"}); got != want {
			t.Errorf("the files count for %s: %v", name, got)
		}
	}
	origins, err := s.Enter(f, Environment{"max-smps": "TEST_SMPS", "fabric": "TEST_UNSET"})
	if err != nil {
		t.Fatal(err)
	}
	if v.text != "file" || v.level != 3 || v.count != 7 || v.wait != 5*time.Second || !slices.Equal(v.list, []string{"a", "b,c"}) || v.on {
		t.Errorf("%+v", v)
	}
	dir := filepath.Dir(path)
	want := map[string]string{
		"fabric": path + ":1", "priority": dir + "/conf.d/20.yaml:1", "max-smps": "TEST_SMPS", "sweep-interval": "--sweep-interval",
		"trusted-sm": path + ":5", "read-only": "default", "sm-key": "default", "once": "default",
	}
	for name, from := range want {
		if origins[name] != from {
			t.Errorf("%s is from %q, want %q", name, origins[name], from)
		}
	}
	if len(s.Files) != 3 {
		t.Errorf("files %q: want the file and two of conf.d", s.Files)
	}
	// What is printed is a file that says the same.
	var out bytes.Buffer
	if err := Print(&out, f, origins, nil); err != nil {
		t.Fatal(err)
	}
	again, err := read(t, filesIn(t, "b.yaml", out.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	g, w := flags()
	if _, err := again.Enter(g, nil); err != nil {
		t.Fatal(err)
	}
	if w.text != v.text || w.level != v.level || w.count != v.count || w.wait != v.wait || !slices.Equal(w.list, v.list) {
		t.Errorf("printed and read again: %+v, want %+v", w, v)
	}
}

// TestFaults: each is found at its place, all at once, and nothing is set.
func TestFaults(t *testing.T) {
	for text, want := range map[string]string{
		"fabrci: x":                               ":1:1: setting \"fabrci\"; did you mean 'fabric'?; expected a flag of ibwarden run without its dashes",
		"fabric: sim\nonce: true":                 ":2:7: setting \"once\" in a file; expected it on the command line only: it is for one run",
		"priority: 256":                           ":1:11: \"256\" for priority; expected a number from 0 to 255",
		"priority: -1":                            "expected a number from 0 to 255",
		"priority: 010":                           "expected a number without a leading zero",
		"priority: 0o10\npriority: 1":             "key \"priority\" of the configuration again, as at 1:1",
		"max-smps: many":                          ":1:11: \"many\" for max-smps; expected a whole number",
		"max-smps: [1]":                           ":1:11: a list for max-smps; expected a whole number",
		"max-smps:":                               "nothing for max-smps",
		"sweep-interval: 10":                      "expected a time with its unit",
		"read-only: \"true\"":                     ":1:12: \"true\" for read-only; expected true or false",
		"read-only: 1":                            "expected true or false",
		"trusted-sm: {a: b}":                      "a mapping for trusted-sm; expected a text, or a list of texts",
		"trusted-sm: [[a]]":                       "a list for an entry of trusted-sm; expected a text",
		"- fabric":                                "a list for the configuration",
		"fabric: &a sim\n":                        "an anchor or alias for fabric",
		"fabric: sim\n---\nfabric: sim\n":         "a second document; expected one document in the file",
		"fabric: !!str sim":                       "a tag for fabric",
		"fabric: [":                               "expected",
		"a: " + strings.Repeat("[", 100) + "\n":   "too deep",
		"fabric: \"\x1b[2J\"\npriority: \"\x1b\"": "\"\\x1b\" for priority",
	} {
		path := filesIn(t, "a.yaml", text)
		s, err := read(t, path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), path) || s != nil {
			t.Errorf("%q: %v\nwant %s", text, err, want)
		}
	}
	path := filesIn(t, "a.yaml", "priority: 300\nfabric: {}\n", "conf.d/x.yaml", "sweep-interval: no\n")
	_, err := read(t, path)
	if err == nil || strings.Count(err.Error(), "expected") != 3 {
		t.Errorf("%v: want the three faults of both files", err)
	}
	for _, text := range []string{"", "# nothing\n", "---\n"} {
		if _, err := read(t, filesIn(t, "a.yaml", text)); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestEveryFormOfValue: a value of another form than its setting's is one fault, at its place,
// whatever the setting is.
func TestEveryFormOfValue(t *testing.T) {
	f, _ := flags()
	for _, name := range Names(f) {
		for value, good := range map[string]string{
			"{}": "", "{a: b}": "", "[[a]]": "", "[{a: b}]": "", "[a, {}]": "", "[~]": "", "~": "", "[a]": "trusted-sm", "[]": "trusted-sm", "true": "read-only",
			"yes": "fabric trusted-sm", "a": "fabric trusted-sm", "7": "fabric priority max-smps trusted-sm sm-key", "7s": "fabric sweep-interval trusted-sm", "00": "", "08": "",
		} {
			s, err := read(t, filesIn(t, "a.yaml", name+": "+value+"\n"))
			switch {
			case strings.Contains(" "+good+" ", " "+name+" "):
				if got, ok := s.Of(name); err != nil || !ok || got.Line != 1 {
					t.Errorf("%s: %s: %v, %+v, want it taken", name, value, err, got)
				}
			case value == "true" || value == "00" || value == "08" || name == "sm-key":
			case err == nil || strings.Count(err.Error(), "expected") != 1 || !strings.Contains(err.Error(), "a.yaml:1:") || s != nil:
				t.Errorf("%s: %s: %v, want one fault", name, value, err)
			}
		}
	}
}

// TestHostileFiles: what others can write, or where secrets can be read, is not followed;
// nor is what is no regular file, or too large.
func TestHostileFiles(t *testing.T) {
	for name, x := range map[string]struct {
		do   func(path string) error
		want string
	}{
		"written by all":   {func(p string) error { return os.Chmod(p, 0o606) }, "everybody can write it"},
		"conf.d for all":   {func(p string) error { return os.Chmod(filepath.Join(filepath.Dir(p), Directory), 0o777) }, "everybody can write it"},
		"one of conf.d":    {func(p string) error { return os.Chmod(filepath.Join(filepath.Dir(p), Directory, "x.yaml"), 0o602) }, "everybody can write it"},
		"a secret is read": {func(p string) error { return os.Chmod(p, 0o640) }, "sm-key, a secret; expected a file that only its owner can read (0600, not 0640)"},
		"a directory":      {func(p string) error { os.Remove(p); return os.Mkdir(p, 0o700) }, "want a regular file"},
		"a dangling link":  {func(p string) error { os.Remove(p); return os.Symlink("nowhere", p) }, "no such file"},
		"too large":        {func(p string) error { return os.Truncate(p, FileSizeMax+1) }, "larger than"},
		"another suffix": {func(p string) error {
			return os.WriteFile(filepath.Join(filepath.Dir(p), Directory, "y.yml"), nil, 0o600)
		}, "ends in .yaml"},
		"conf.d is no place": {func(p string) error {
			d := filepath.Join(filepath.Dir(p), Directory)
			os.RemoveAll(d)
			return os.WriteFile(d, nil, 0o600)
		}, "no directory"},
		"bytes": {func(p string) error { return os.WriteFile(p, []byte("fabric: \xff\xfe\x00\n"), 0o600) }, ""},
	} {
		path := filesIn(t, "a.yaml", "sm-key: 0x1234\n", "conf.d/x.yaml", "fabric: sim\n")
		if _, err := read(t, path); err != nil {
			t.Fatal(err)
		}
		if err := x.do(path); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, path); x.want != "" && (err == nil || !strings.Contains(err.Error(), x.want)) {
			t.Errorf("%s: %v: want %s", name, err, x.want)
		}
	}
	// None, and OpenSM's default, are no secrets.
	for _, key := range []string{"0", "1", "0x1"} {
		path := filesIn(t, "a.yaml", "sm-key: "+key+"\n")
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, path); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	path := filesIn(t, "a.yaml", "sm-key: 0x1234abcd\n")
	s, err := read(t, path)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := flags()
	origins, err := s.Enter(f, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Print(&out, f, origins, nil); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "1234") || !strings.Contains(text, "# sm-key is a secret") || !strings.Contains(text, path+":1") {
		t.Error(text)
	}
}

// TestSchema: what the schema takes and what Read takes are the same.
func TestSchema(t *testing.T) {
	f, _ := flags()
	text, err := json.Marshal(Schema(f, func(flag string) []string {
		if flag == "fabric" {
			return []string{"sim", "umad"}
		}
		return nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	for text, good := range map[string]bool{
		"": true, "fabric: sim": true, "priority: 3": true, "priority: 300": false, "sweep-interval: 1m30s": true, "sweep-interval: 10": false,
		"read-only: true": true, "read-only: 1": false, "trusted-sm: [a, b]": true, "trusted-sm: a": true, "trusted-sm: {a: b}": false,
		"max-smps: 4": true, "max-smps: four": false, "sm-key: 0": true, "sm-key: [1]": false, "once: true": false, "other: 1": false,
	} {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		_, refused := read(t, filesIn(t, "a.yaml", text))
		if err := schema.Validate(instance); (err == nil) != good || (refused == nil) != good {
			t.Errorf("%q: by the schema %v, by Read %v: want %v of both", text, err, refused, good)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("fabric: sim\npriority: 3\ntrusted-sm: [a, b]\n")
	f.Add("read-only: true\nsweep-interval: 1m\n# x\n---\n")
	f.Fuzz(func(t *testing.T, text string) {
		path := filesIn(t, "a.yaml", text)
		s, err := read(t, path)
		if err != nil {
			return
		}
		set, _ := flags()
		origins, err := s.Enter(set, nil)
		if err != nil {
			t.Fatalf("%q was taken and cannot be set: %v", text, err)
		}
		var out bytes.Buffer
		if err := Print(&out, set, origins, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := read(t, filesIn(t, "a.yaml", out.String())); err != nil {
			t.Fatalf("%q is printed as\n%s\nwhich is refused: %v", text, out.String(), err)
		}
	})
}

// TestPrintedValuesReadBack: what Print writes is what was set, whatever the value, on one line;
// a text stands without quotes where no reader takes it for anything else.
func TestPrintedValuesReadBack(t *testing.T) {
	texts := map[string]string{
		"sim": "sim", "": `""`, "sim:fat-tree,3": "sim:fat-tree,3", "/var/lib/x.y_z": "/var/lib/x.y_z", "a": "a", "a=b+c-d": "a=b+c-d", "_": "_",
		"1": `"1"`, "-a": `"-a"`, "a:": `"a:"`, "a b": `"a b"`, "a#b": `"a#b"`, `a"b`: `"a\"b"`, "a\nb": `"a\nb"`, "~": `"~"`, "é": `"é"`, "0x1": `"0x1"`,
		"True": `"True"`, "xtrue": "xtrue", "trues": "trues",
	}
	for _, word := range []string{"true", "false", "yes", "no", "on", "off", "y", "n", "null", "NULL", "Yes", "oFF"} {
		texts[word] = `"` + word + `"`
	}
	for text, want := range texts {
		f, v := flags()
		v.text, v.level, v.count, v.wait, v.on, v.list = text, 7, 12, 90*time.Second, true, []string{text, "b,c"}
		var out bytes.Buffer
		if err := Print(&out, f, map[string]string{"fabric": "here"}, nil); err != nil {
			t.Fatal(err)
		}
		line, _, _ := strings.Cut(out.String()[strings.Index(out.String(), "fabric: "):], "\n")
		if got, origin, _ := strings.Cut(line, "  # "); strings.TrimSpace(got) != "fabric: "+want || origin != "here" {
			t.Errorf("%q is printed as %s, want %s", text, line, want)
		}
		s, err := read(t, filesIn(t, "a.yaml", out.String()))
		if err != nil {
			t.Errorf("%q: %v in\n%s", text, err, out.String())
			continue
		}
		g, w := flags()
		if _, err := s.Enter(g, nil); err != nil {
			t.Fatal(err)
		}
		if w.text != text || w.level != 7 || w.count != 12 || w.wait != 90*time.Second || !w.on || !slices.Equal(w.list, v.list) {
			t.Errorf("%q reads back as %+v from\n%s", text, w, out.String())
		}
	}
	// A default that is looked for later is the variable's; one that was set is not.
	t.Setenv("OF_THE_TEST", "elsewhere")
	for text, want := range map[string]string{"": "elsewhere", "sim": "sim"} {
		f, v := flags()
		v.text = text
		var out bytes.Buffer
		if err := Print(&out, f, nil, Environment{"fabric": "OF_THE_TEST"}); err != nil || !strings.Contains(out.String(), "fabric: "+want+" ") {
			t.Errorf("%q: %v\n%s", text, err, out.String())
		}
	}
	f, v := flags()
	v.key = "1" // a key that everybody knows
	f.String("webhook", "", "a URL")
	f.StringSlice("alertmanager", nil, "URLs")
	var none, some bytes.Buffer
	errs := []error{Print(&none, f, nil, nil), f.Set("alertmanager", "https://h/token"), Print(&some, f, nil, nil)}
	if errors.Join(errs...) != nil || !strings.Contains(none.String(), "alertmanager: []") || !strings.Contains(some.String(), "# alertmanager is a secret") || strings.Contains(some.String(), "token") {
		t.Errorf("%v\n%s\n%s", errs, none.String(), some.String())
	}
	for url, want := range map[string]string{"": "webhook: \"\"", "https://h/token": "# webhook is a secret"} {
		if err := f.Set("webhook", url); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Print(&out, f, nil, nil); err != nil || !strings.Contains(out.String(), want) || strings.Contains(out.String(), "token") || !strings.Contains(out.String(), "sm-key: \"1\"") {
			t.Errorf("%v\n%s", err, out.String())
		}
	}
}

// TestWhoseSettingCounts: the command line goes before the environment, and that before files.
func TestWhoseSettingCounts(t *testing.T) {
	t.Setenv("OF_THE_TEST", "")
	e := Environment{"fabric": "OF_THE_TEST"}
	with, err := read(t, filesIn(t, "a.yaml", "fabric: one\n"))
	if err != nil {
		t.Fatal(err)
	}
	without, err := read(t, filesIn(t, "a.yaml", "once: true\n"))
	if without == nil {
		without, err = read(t, filesIn(t, "a.yaml", "read-only: true\n"))
	}
	if err != nil {
		t.Fatal(err)
	}
	other, err := read(t, filesIn(t, "a.yaml", "fabric: two\n"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := read(t, filesIn(t, "a.yaml", "\nfabric: one\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name      string
		s         *Settings
		env       string
		line      bool
		counts    bool
		origin    string // "" for that of the file
		wantValue string
	}{
		{"file", with, "", false, true, "", "one"}, {"no file", without, "", false, false, "default", "sim"},
		{"environment", with, "x", false, false, "OF_THE_TEST", "sim"}, {"command line", with, "", true, false, "--fabric", "typed"},
		{"all", with, "x", true, false, "--fabric", "typed"}, {"environment alone", without, "x", false, false, "OF_THE_TEST", "sim"},
	} {
		t.Setenv("OF_THE_TEST", x.env)
		f, v := flags()
		if x.line {
			if err := f.Set("fabric", "typed"); err != nil {
				t.Fatal(err)
			}
		}
		if got := x.s.Counts(f.Lookup("fabric"), e); got != x.counts {
			t.Errorf("%s: counts %v", x.name, got)
		}
		origins, err := x.s.Enter(f, e)
		if of, _ := x.s.Of("fabric"); x.origin == "" {
			x.origin = of.Where()
		}
		if err != nil || origins["fabric"] != x.origin || v.text != x.wantValue || len(origins) != 8 || origins["sm-key"] != "default" {
			t.Errorf("%s: %v, %q, want %q from %s, %v", x.name, origins, v.text, x.wantValue, x.origin, err)
		}
	}
	for _, x := range []struct {
		before, now *Settings
		want        bool
	}{{with, with, false}, {with, again, false}, {with, other, true}, {with, without, true}, {without, with, true}, {without, without, false}} {
		if got := Changed(x.before, x.now, "fabric"); got != x.want {
			t.Errorf("changed %v, want %v", got, x.want)
		}
	}
}
