package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/ibwarden/ibwarden/internal/app/cli"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

// directory makes one with these files.
func directory(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// run runs a command line, and returns what it printed.
func run(t *testing.T, line ...string) (out, complaints string, status int) {
	t.Helper()
	var o, e bytes.Buffer
	status = cli.Main(line, &o, &e)
	return o.String(), e.String(), status
}

// many has every option that may become an entry of the configuration.
const many = `guid 0x0002c90300000001
m_key 0x00c0ffee00c0ffee
sm_key 0x5ec4e75eed
sa_key 0x5eed5eed
lmc 1
routing_engine ftree
sm_priority 14
sweep_interval 90
max_wire_smps 16
perfmgr TRUE
log_flags 0x07
qos TRUE
qos_sl2vl 0,1,2,3,0,1,2,3,0,1,2,3,0,1,2,3
subnet_prefix 0xfe80000000000007
subnet_timeout 17
part_enforce in
allow_both_pkeys TRUE
force_link_width 2
force_link_speed_ext 2
`

// TestConfigurationIsOneOfRun: `ibwarden run config check` and `ibwarden run` take the configuration,
// and `ibwarden policy check` the policy.
func TestConfigurationIsOneOfRun(t *testing.T) {
	dir := directory(t, map[string]string{
		"opensm.conf": many, "partitions.conf": "red=0x10,sl=1 : 0x100009=both, 0x10000b ;\n",
		"guid2lid": "0x0000000000100009 0x0004 0x0005\n\n", "guid2mkey": "0x0000000000100009 0x00000000000dead1\n\n",
		"neighbors": "0x0000000000100009:1 0x0000000000100011:3\n\n",
	})
	to, data := filepath.Join(t.TempDir(), "to"), filepath.Join(t.TempDir(), "data")
	out, complaints, status := run(t, "migrate", "opensm", dir, "--output", to, "--write-data", data)
	if status != 0 {
		t.Fatalf("status %d: %s", status, complaints)
	}
	text, err := os.ReadFile(filepath.Join(to, "ibwarden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]any
	if err := yaml.Unmarshal(text, &entries); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if len(entries) < 15 {
		t.Errorf("%d entries in\n%s", len(entries), text)
	}
	if out, complaints, status := run(t, "run", "config", "check", filepath.Join(to, "ibwarden.yaml")); status != 0 {
		t.Errorf("config check: %s%s of\n%s", out, complaints, text)
	}
	if out, complaints, status := run(t, "run", "--config", filepath.Join(to, "ibwarden.yaml"), "--print-config"); status != 0 || !strings.Contains(out, "14") {
		t.Errorf("run --print-config: status %d, %s%s", status, out, complaints)
	}
	if out, complaints, status := run(t, "policy", "check", filepath.Join(to, "policy.yaml")); status != 0 {
		t.Errorf("policy check: %s%s", out, complaints)
	}
	state, err := files.LoadState(filepath.Join(data, "state.json"))
	if err != nil || state.LIDs[0x100009] != 4 || state.Managed {
		t.Errorf("state %+v, %v", state, err)
	}
	asJSON, _, _ := run(t, "migrate", "opensm", dir, "--json")
	for _, key := range []string{"c0ffee", "5ec4e7", "5eed5eed", "dead1"} {
		if strings.Contains(out, key) || strings.Contains(complaints, key) || strings.Contains(asJSON, key) {
			t.Errorf("%s, which is a key, was printed", key)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "m_key")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("m_key: %v, %v", info, err)
	}
}

// TestNothingIsWritten: a fault, or a file that is there, leaves everything as it was.
func TestNothingIsWritten(t *testing.T) {
	good := "red=0x10 : 0x100009=full ;\n"
	for name, x := range map[string]struct {
		files map[string]string
		flags []string
		said  string
	}{
		"a fault in partitions.conf":   {map[string]string{"opensm.conf": "", "partitions.conf": "bad=0x55 : 0xZZZ=full;\n"}, nil, "partitions.conf:1:12: port GUID"},
		"an empty partitions.conf":     {map[string]string{"partitions.conf": "# nothing\n"}, nil, "OpenSM would open the fabric"},
		"no partitions.conf":           {map[string]string{"opensm.conf": "sm_priority 3\n"}, nil, "--without-partitions"},
		"a partitions.conf elsewhere":  {map[string]string{"opensm.conf": "partition_config_file /nowhere/p.conf\n", "partitions.conf": good}, nil, "opensm.conf:1:1: partition_config_file, which is not there"},
		"a control character":          {map[string]string{"opensm.conf": "sm_priority \x1b[2J\n", "partitions.conf": good}, nil, "control character 0x1b"},
		"a long line":                  {map[string]string{"opensm.conf": "log_prefix " + strings.Repeat("x", 1020) + "\n", "partitions.conf": good}, nil, "a line of 1031 bytes"},
		"no OpenSM":                    {map[string]string{"x": ""}, nil, "neither opensm.conf nor another file"},
		"a misspelt flag":              {map[string]string{"partitions.conf": good}, []string{"--ouput", "x"}, "did you mean"},
		"a directory that is no place": {map[string]string{"partitions.conf/x": good}, nil, "a directory: want a regular file"},
	} {
		to := filepath.Join(t.TempDir(), "to")
		line := append([]string{"migrate", "opensm", directory(t, x.files), "--output", to}, x.flags...)
		out, complaints, status := run(t, line...)
		if status != 2 || !strings.Contains(complaints, x.said) {
			t.Errorf("%s: status %d, said %q and %q, want %q", name, status, out, complaints, x.said)
		}
		if _, err := os.Stat(to); err == nil {
			t.Errorf("%s: %s was made", name, to)
		}
	}
	for _, files := range []map[string]string{
		{"partitions.conf": good, "guid2mkey": "0x100009 0x5\n0x10000b secret\n"},
		{"partitions.conf": good, "guid2mkey": "0x100009 0x5\n", "neighbors": "0x100009:1 0x200000\n"},
	} {
		to, data := filepath.Join(t.TempDir(), "to"), filepath.Join(t.TempDir(), "data")
		out, complaints, status := run(t, "migrate", "opensm", directory(t, files), "--output", to, "--write-data", data)
		_, wrote := os.Stat(to)
		if _, err := os.Stat(data); status != 2 || err == nil || wrote == nil || strings.Contains(out+complaints, "secret") {
			t.Errorf("status %d, %q, %q", status, out, complaints)
		}
	}
	to := directory(t, map[string]string{"policy.yaml": "mine"})
	dir := directory(t, map[string]string{"partitions.conf": good})
	if _, complaints, status := run(t, "migrate", "opensm", dir, "--output", to); status != 2 || !strings.Contains(complaints, "--force") {
		t.Errorf("status %d, said %q", status, complaints)
	}
	if left, _ := filepath.Glob(filepath.Join(to, "*")); len(left) != 1 {
		t.Errorf("written: %v", left)
	}
	if _, complaints, status := run(t, "migrate", "opensm", dir, "--output", to, "--force"); status != 0 {
		t.Errorf("status %d, said %q", status, complaints)
	}
	// The policy of no partitions.conf, by name, is OpenSM's: everybody is a full member.
	dir = directory(t, map[string]string{"opensm.conf": "sm_priority 3\n"})
	if _, complaints, status := run(t, "migrate", "opensm", dir, "--output", to, "--force", "--without-partitions"); status != 0 {
		t.Errorf("status %d, said %q", status, complaints)
	}
	if text, err := os.ReadFile(filepath.Join(to, "policy.yaml")); err != nil || !strings.Contains(string(text), "- ALL") {
		t.Errorf("%v, %s", err, text)
	}
}

// TestHostileFiles: what is no file of OpenSM's is refused or said, and steers no terminal.
func TestHostileFiles(t *testing.T) {
	good := "red=0x10 : 0x100009=full ;\n"
	dir := directory(t, map[string]string{"partitions.conf": good, "opensm.conf": "sm_priority 3\n"})
	for name, make := range map[string]func(path string) error{
		"a FIFO":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory":        func(path string) error { return os.Mkdir(path, 0o700) },
		"a link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"binary":             func(path string) error { return os.WriteFile(path, []byte{0x7F, 'E', 'L', 'F', 0, 1, 2, 0xFF}, 0o600) },
		"huge":               func(path string) error { return truncated(path, 128<<20) },
	} {
		for _, file := range []string{"opensm.conf", "partitions.conf", "qos-policy.conf", "guid2lid", "prefix-routes.conf"} {
			bad := directory(t, map[string]string{"partitions.conf": good, "opensm.conf": "sm_priority 3\n"})
			path := filepath.Join(bad, file)
			_ = os.Remove(path)
			if err := make(path); err != nil {
				t.Fatal(err)
			}
			out, complaints, status := run(t, "migrate", "opensm", bad, "--output", filepath.Join(bad, "to"))
			if _, err := os.Stat(filepath.Join(bad, "to")); status != 2 || err == nil || !strings.Contains(complaints, file) {
				t.Errorf("%s as %s: status %d, %q, %q", name, file, status, out, complaints)
			}
		}
	}
	// Names are printed as they are, but for what steers a terminal.
	wild := directory(t, map[string]string{
		"opensm.conf": "log_prefix \u202eevil\u2066\nnode_name_map_name names\n", "names": "0x1 \"\u202eleaf\"\n",
		"partitions.conf": "r\u202eed=0x10 : 0x100009=full ;\n",
	})
	out, complaints, _ := run(t, "migrate", "opensm", wild)
	if strings.ContainsAny(out+complaints, "\x1b\u202e\u2066") {
		t.Errorf("a terminal is steered: %q, %q", out, complaints)
	}
	// A file is not written through a link that somebody has laid.
	to, victim := t.TempDir(), filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(to, "policy.yaml")); err != nil {
		t.Fatal(err)
	}
	_, complaints, status := run(t, "migrate", "opensm", dir, "--output", to, "--force")
	if text, _ := os.ReadFile(victim); status != 2 || string(text) != "mine" || !strings.Contains(complaints, "no regular file") {
		t.Errorf("status %d, %q, and the file is %q", status, complaints, text)
	}
	if left, _ := filepath.Glob(filepath.Join(to, "*")); len(left) != 1 {
		t.Errorf("written: %v", left)
	}
	// A path with a line end stays in its comment.
	odd := filepath.Join(t.TempDir(), "a\nprofile: basic #")
	if err := os.Mkdir(odd, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"opensm.conf": "sm_priority 3\n", "partitions.conf": good} {
		if err := os.WriteFile(filepath.Join(odd, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, complaints, status := run(t, "migrate", "opensm", odd, "--output", filepath.Join(odd, "to")); status != 0 {
		t.Fatalf("status %d, %q", status, complaints)
	}
	text, err := os.ReadFile(filepath.Join(odd, "to", "ibwarden.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var entries map[string]any
	if err := yaml.Unmarshal(text, &entries); err != nil || entries["profile"] != nil || entries["policy"] != filepath.Join(odd, "to", "policy.yaml") {
		t.Errorf("%v: %v of\n%s", err, entries, text)
	}
}

// truncated makes a file with nothing but zeros.
func truncated(path string, size int64) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	return os.Truncate(path, size)
}

// TestCopiedDirectory: what a copy does not have is not taken from this machine, and its files
// are found by their names, those of the cache in its cache too.
func TestCopiedDirectory(t *testing.T) {
	dir := directory(t, map[string]string{
		"opensm.conf":     "partition_config_file /somewhere/else/parts.conf\nroot_guid_file /somewhere/else/roots\n",
		"parts.conf":      "red=0x10 : 0x100009=full ;\n",
		"roots":           "0x200004\n\n# comment\n0x200005\nspine\n",
		"partitions.conf": "other=0x99 : ALL=full ;\n",
		"cache/guid2lid":  "0x0000000000100009 0x0004 0x0004\n0x0000000000100009 0x0005 0x0005\n0x000000000010000b 0xc000 0xc000\n0x10000d 4 4\nx\n",
	})
	out, complaints, status := run(t, "migrate", "opensm", dir)
	if status != 0 {
		t.Fatalf("status %d: %s", status, complaints)
	}
	for _, want := range []string{
		filepath.Join(dir, "parts.conf"), "red=0x0010", filepath.Join(dir, "cache/guid2lid"), "the port has LIDs in an earlier line", "want unicast LIDs",
		"LID 4 is that of the port in line 1", "OpenSM finds no GUID here",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if strings.Contains(out, "0x0099") {
		t.Errorf("another partitions.conf was taken:\n%s", out)
	}
}
