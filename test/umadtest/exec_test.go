package umadtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// diagnostics are Debian's programs, each as it is called by hand, with LID for that of the last
// host, SWITCH for that of the first switch, and DIR for a directory. All 30 of infiniband-diags
// are there, and ibdiagnet.
var diagnostics = []string{
	"ibaddr", "ibaddr LID",
	"ibnetdiscover", "ibnetdiscover -p", "ibnetdiscover --cache DIR/cache", "ibcacheedit DIR/cache DIR/edited", "ibnetdiscover --load-cache DIR/edited",
	"ibhosts", "ibnodes", "ibswitches", "ibrouters", "iblinkinfo", "iblinkinfo -l", "ibstat", "ibstatus", "sminfo",
	"smpquery nodeinfo LID", "smpquery nodedesc LID", "smpquery portinfo LID 1", "smpquery -D portinfo 0,1 0", "smpquery -D portinfo 0", "smpquery -D switchinfo 0,1",
	"smpquery pkeys LID", "smpquery sl2vl LID", "smpquery vlarb LID", "smpquery guidinfo LID", "smpquery -c nodeinfo SWITCH 0,1",
	"smpdump -D 0,1 0x11", "smpdump LID 0x15 1", "smpdump -D 0,1 0x15 0",
	"perfquery LID 1", "perfquery -x LID 1", "perfquery -a SWITCH", "ibqueryerrors", "ibqueryerrors -r",
	"ibportstate SWITCH 1", "ibportstate -D 0,1 1", "ibroute SWITCH", "ibroute -M SWITCH", "ibtracert 1 LID",
	"saquery", "saquery -p", "saquery NR", "saquery PIR", "saquery SMIR", "ibccquery LID", "ibccconfig SwitchCongestionSetting LID", "vendstat -N SWITCH",
	"dump_lfts", "dump_lfts -D", "dump_fts", "dump_mfts", "ibidsverify", "ibfindnodesusing SWITCHGUID 1",
	"sh -c \"dump_lfts > DIR/lfts; check_lft_balance -v -l DIR/lfts -i DIR/cache\"", "ibping -c 1 LID", "ibsysstat LID", "ibdiagnet -o DIR/diag",
}

// moving is what changes from one run of a program to the next, and the key, its level and its
// lease: process numbers, times, counters that the reading itself moves.
var moving = []*regexp.Regexp{
	regexp.MustCompile(`(?m)^# Topology file: generated on .*$`),
	// That a time-out was seen by the library's clock or by the kernel's is a race.
	regexp.MustCompile(`(?m)^ibwarn: \[\d+\] _do_madrpc: recv failed: Connection timed out\n`),
	regexp.MustCompile(`(?m)^ibwarn: \[\d+\]|^ibpanic: \[\d+\]`),
	regexp.MustCompile(`activity count \d+|ActCount\.+\d+`),
	regexp.MustCompile(`Port(Unicast)?(Xmit|Rcv)(Data|Pkts):\.+\d+`),
	regexp.MustCompile(`(?m)^-I- Done\. Run time was .*$`),
	regexp.MustCompile(`(?m)^rtt .*$|time \d+ ms|time [0-9.]+ ms`),
	regexp.MustCompile(`ProtectBits:\.+\d|Mkey:\.+.*|MkeyLeasePeriod:\.+\d+`),
}

// still is a text without what moves.
func still(text string) string {
	for _, x := range moving {
		text = x.ReplaceAllString(text, "")
	}
	return text
}

// dumped is what smpdump prints of PortInfo without the byte that has the level.
func dumped(text string) string {
	lines := strings.Split(text, "\n")
	if len(lines) > 2 && len(lines[2]) > 6 {
		lines[2] = lines[2][:5] + "." + lines[2][6:]
	}
	return strings.Join(lines, "\n")
}

// TestDiagnosticsUnderExec: what Debian's diagnostics print where the default profile guards each port with a key
// is what they print where everybody may read; no key is in it; and at a tenant's host they find
// nothing.
func TestDiagnosticsUnderExec(t *testing.T) {
	need.Long(t, "every diagnostic, three times")
	programs := []string{"ibdiagnet"}
	for _, line := range diagnostics {
		if name := strings.Fields(line)[0]; name != "sh" {
			programs = append(programs, name)
		}
	}
	needPrograms(t, programs...)
	if n := len(slices.Compact(slices.Sorted(slices.Values(append(programs, "check_lft_balance"))))); n != 31 {
		t.Errorf("%d programs, want 31: 30 of infiniband-diags, and ibdiagnet", n)
	}
	r := newRig(t, "fattree,radix=6,levels=2")
	data := filepath.Join(r.dir, "data") // IBWARDEN_DATA of commands inside
	far := r.hosts()[len(r.hosts())-1]
	plain := make(map[string]output)
	stop := r.guarded("basic")
	lids := r.lids()
	r.start(far.ID, "ibping", "-S")
	r.start(far.ID, "ibsysstat", "-S")
	of := func(line string) []string {
		sw := far.Ports[1].Peer
		line = strings.NewReplacer("DIR", r.dir, "SWITCHGUID", sw.GUID.String(), "SWITCH", strconv.Itoa(lids[sw.GUID.String()]), "LID", strconv.Itoa(lids[far.GUID.String()])).Replace(line)
		return []string{"sh", "-c", line}
	}
	r.eventually("the servers of ibping and ibsysstat answer", func() bool {
		return r.run("", of("ibping -c 1 LID")...).status == 0 && r.run("", of("ibsysstat LID")...).status == 0
	})
	for _, line := range diagnostics {
		plain[line] = r.run("", of(line)...)
	}
	stop()
	stop = r.guarded("tenant")
	defer stop()
	keys := keysOf(t, data)
	var failed []string
	for _, line := range diagnostics {
		was := plain[line]
		got := r.ibdiagnetAgain(line, was, func() output { return r.run("", append([]string{"ibwarden", "keys", "exec", "--"}, of(line)...)...) })
		a, b := still(was.stdout), still(got.stdout)
		if strings.HasPrefix(line, "smpdump") && strings.Contains(line, "0x15") {
			a, b = dumped(a), dumped(b)
		}
		if a != b || was.status != got.status || still(was.stderr) != still(got.stderr) {
			t.Errorf("%s: status %d under basic, %d under tenant\n%s", line, was.status, got.status, firstDifference(a+still(was.stderr), b+still(got.stderr)))
		}
		if was.status != 0 {
			failed = append(failed, line)
		}
		for _, key := range keys {
			if strings.Contains(strings.ToLower(got.stdout+got.stderr), key) || strings.Contains(strings.ReplaceAll(got.stdout, " ", ""), key) {
				t.Errorf("%s: prints a key", line)
			}
		}
	}
	// Those that no device here answers, whatever the profile.
	if want := []string{"ibccquery LID", "ibccconfig SwitchCongestionSetting LID", "vendstat -N SWITCH"}; !slices.Equal(failed, want) {
		t.Errorf("under basic these fail: %q, want %q", failed, want)
	}
	if !strings.Contains(plain["ibnetdiscover"].stdout, far.Description) || strings.Count(plain["saquery NR"].stdout, "NodeRecord") != len(r.topology.Nodes) {
		t.Error("under basic ibnetdiscover and saquery do not show the fabric")
	}
	t.Run("at a tenant's host", func(t *testing.T) { r.in(t).execAtTenant(far, of) })
	t.Run("what is refused", func(t *testing.T) { r.in(t).execRefuses(of) })
	t.Run("what is written", func(t *testing.T) { r.in(t).execWrites(data, of) })
	t.Run("without a service", func(t *testing.T) {
		r := r.in(t)
		o := r.run("", append([]string{"ibwarden", "keys", "exec", "--server", "none", "--data", data, "--"}, of("smpquery nodeinfo LID")...)...)
		if o.stdout != plain["smpquery nodeinfo LID"].stdout || !strings.Contains(o.stderr, "exec: reads with M_Keys: sh -c smpquery nodeinfo") {
			t.Errorf("%+v", o)
		}
	})
}

// ibdiagnetAgain runs what may lose answers by its own fault again.
func (r *rig) ibdiagnetAgain(line string, was output, run func() output) (got output) {
	for range ibdiagnetTries {
		if got = run(); !strings.HasPrefix(line, "ibdiagnet") || still(got.stdout) == still(was.stdout) {
			break
		}
	}
	return got
}

// guarded brings the fabric up with a profile, until stop is called.
func (r *rig) guarded(profile string, flags ...string) (stop func()) {
	r.Helper()
	log := filepath.Join(r.dir, profile+".log")
	_, stop = r.start("", "sh", "-c", fmt.Sprintf("exec %s run --fabric umad --data %s/data --profile %s --quarantine 0s %s > %s 2>&1", must(binary()), r.dir, profile, strings.Join(flags, " "), log))
	read := func() string {
		text, _ := os.ReadFile(log) // it is not there at first
		return string(text)
	}
	r.Cleanup(func() {
		if r.Failed() {
			r.Logf("%s: %s", profile, read())
		}
	})
	r.eventually("the fabric is proved under "+profile, func() bool { return strings.Contains(read(), "verdict: isolated") })
	return stop
}

// keysOf are the keys of a data directory, in hexadecimal digits and in decimal ones.
func keysOf(t *testing.T, data string) (out []string) {
	t.Helper()
	ring, err := daemon.OpenKeys(daemon.DataDir(data), "", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range ring.Book.Entries() {
		key := uint64(ring.Ring.MKey(s.ID, s.Current))
		out = append(out, fmt.Sprintf("%016x", key), fmt.Sprint(key))
	}
	if len(out) < 10 {
		t.Fatalf("%d keys", len(out)/2)
	}
	return out
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range max(len(x), len(y)) {
		if i >= len(x) || i >= len(y) || x[i] != y[i] {
			return fmt.Sprintf("line %d: %q, want %q (%d and %d lines)", i+1, at(y, i), at(x, i), len(y), len(x))
		}
	}
	return "no line differs"
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "nothing"
}

// execAtTenant: a tenant's host has neither the data directory nor the service.
func (r *rig) execAtTenant(host *topology.Node, of func(string) []string) {
	if o := r.run(host.ID, "ibnetdiscover"); strings.Contains(o.stdout, "Switch\t") {
		r.Errorf("a tenant's host reads the fabric: %s", o.stdout)
	}
	elsewhere := filepath.Join(r.dir, "elsewhere")
	line := append([]string{"env", "IBWARDEN_DATA=" + elsewhere, must(binary()), "keys", "exec", "--server", "none", "--"}, of("ibnetdiscover")...)
	if o := r.run(host.ID, line...); o.status != 2 || o.stdout != "" || !strings.Contains(o.stderr, "no service hands them out") {
		r.Errorf("%+v", o)
	}
	// Made-up keys open nothing.
	if err := os.MkdirAll(elsewhere, 0o700); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(elsewhere, "secret"), []byte(strings.Repeat("a5", 32)), 0o600); err != nil {
		r.Fatal(err)
	}
	if o := r.run(host.ID, line...); o.status == 0 || strings.Contains(o.stdout, "Switch\t") {
		r.Errorf("with a secret that is not the fabric's: %+v", o)
	}
}

func (r *rig) execRefuses(of func(string) []string) {
	for _, x := range []struct{ flags, line, says string }{
		{"", "perfquery -R LID 1", "a Set of performance management"},
		{"", "ibportstate SWITCH 3 disable", "a Set of subnet management, PortInfo"},
		{"", "sminfo -s 2 LID", ""},
		{"--write", "opensm -o -f DIR/opensm.log", "it may not be a subnet manager"},
	} {
		words := []string{"ibwarden", "keys", "exec"}
		if x.flags != "" {
			words = append(words, x.flags)
		}
		o := r.run("", append(append(words, "--"), of(x.line)...)...)
		if x.says != "" && (strings.Count(o.stderr, "exec: refused: ") != 1 || !strings.Contains(o.stderr, x.says)) {
			r.Errorf("%s: %+v", x.line, o)
		}
	}
	if o := r.run("", append([]string{"ibwarden", "keys", "exec", "--"}, of("ls /dev/infiniband /sys/class/infiniband_mad")...)...); strings.Contains(o.stdout, "issm") || !strings.Contains(o.stdout, "umad0") {
		r.Errorf("what a program sees: %s", o.stdout)
	}
	if o := r.run("", "ibwarden", "keys", "exec", "--", "sh", "-c", "exit 7"); o.status != 7 {
		r.Errorf("exit 7 is %d", o.status)
	}
	if o := r.run("", "ibwarden", "keys", "exec", "--", "sh", "-c", "kill -KILL $$"); o.status != 128+9 {
		r.Errorf("killed is %d", o.status)
	}
	if o := r.run("", "ibwarden", "keys", "exec", "--server", "https://localhost:1", "--", "ibnodes"); o.status != 2 || !strings.Contains(o.stderr, "on the machine of the service alone") {
		r.Errorf("over TCP: %+v", o)
	}
}

// execWrites: with --write a Set goes through, the keys stay as they are, and each run is in the
// audit log with its words.
func (r *rig) execWrites(data string, of func(string) []string) {
	before := keysShown(r, data)
	for _, line := range []string{"ibportstate LID 1 speed 1", "ibportstate SWITCH 4 speed 1", "perfquery -R LID 1"} {
		if o := r.run("", append([]string{"ibwarden", "keys", "exec", "--write", "--"}, of(line)...)...); o.status != 0 && !strings.Contains(o.stdout+o.stderr, "CA") {
			r.Errorf("%s: %+v", line, o)
		}
	}
	if o := r.run("", append([]string{"ibwarden", "keys", "exec", "--"}, of("smpquery -D portinfo 0,1 0")...)...); !regexp.MustCompile(`ProtectBits:\.+2`).MatchString(o.stdout) {
		r.Errorf("the level of protection has changed: %s", o.stdout)
	}
	if after := keysShown(r, data); after != before {
		r.Errorf("keys before\n%s\nafter\n%s", before, after)
	}
	log := r.ask("", "ibwarden", "history", "decisions", "--limit", "500")
	for _, want := range []string{"reads and writes with M_Keys: sh -c perfquery -R", "reads with M_Keys: sh -c ibnetdiscover", "uid 0"} {
		if !strings.Contains(log, want) {
			r.Errorf("no %q in the audit log:\n%s", want, log)
		}
	}
}

func keysShown(r *rig, data string) string {
	return r.ask("", "ibwarden", "keys", "show", "--data", data)
}

// TestExecHidesItsMemory: the program cannot read the memory in which the keys are, and has no
// right to trace.
func TestExecHidesItsMemory(t *testing.T) {
	r := newRig(t, "")
	defer r.guarded("tenant")()
	// The last writable mapping of each is its stack; that of the shell can be read.
	const parent = `for p in $$ $PPID; do at=$(grep '\[stack\]' /proc/$p/maps | cut -d- -f1); dd if=/proc/$p/mem bs=4096 skip=$((0x$at / 4096)) count=1 >/dev/null 2>&1 && echo "reads $([ $p = $$ ] && echo its own || echo that of exec)"; done
grep -E 'Cap(Eff|Prm|Bnd)' /proc/self/status`
	o := r.run("", "ibwarden", "keys", "exec", "--", "sh", "-c", parent)
	const trace = 1 << 19 // CAP_SYS_PTRACE
	sets := regexp.MustCompile(`Cap\w+:\s*([0-9a-f]+)`).FindAllStringSubmatch(o.stdout, -1)
	if !strings.Contains(o.stdout, "reads its own") || strings.Contains(o.stdout, "reads that of exec") || len(sets) != 3 {
		r.Errorf("%+v", o)
	}
	for _, m := range sets {
		if bits, err := strconv.ParseUint(m[1], 16, 64); err != nil || bits&trace != 0 {
			r.Errorf("the right to trace is there: %s", o.stdout)
		}
	}
}
