package umadtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// apart is a policy of two tenants and a storage for each of them, over a default
// partition or, as "none" says, without one.
func apart(standard string, red, blue []*topology.Node, storage *topology.Node) string {
	return fmt.Sprintf(`version: 1
default: %s
partitions:
  - {name: red, pkey: 0x10, ipoib: true, members: {full: [%s]}}
  - {name: blue, pkey: 0x20, ipoib: true, members: {full: [%s]}}
  - {name: storage-red, pkey: 0x31, members: {full: [%[4]s], limited: [%[2]s]}}
  - {name: storage-blue, pkey: 0x32, members: {full: [%[4]s], limited: [%[3]s]}}
`, standard, guids(red), guids(blue), guids([]*topology.Node{storage}))
}

var description = regexp.MustCompile(`(?m)^\s*NodeDescription\.+(.+)$`)

// sees are the names of the nodes that subnet administration tells a host of, in
// one long answer.
func (r *rig) sees(host *topology.Node) map[string]bool {
	r.Helper()
	out := map[string]bool{}
	for _, m := range description.FindAllStringSubmatch(r.ask(host.ID, "saquery", "NR"), -1) {
		out[strings.TrimSpace(m[1])] = true
	}
	return out
}

// TestNone: Debian's programs, which know nothing of it and go by index 0 of the
// table, work on a fabric without a default partition, and learn of their tenant only.
// Meanwhile the policy goes over to the shared default and back.
func TestNone(t *testing.T) {
	need.Long(t, "hosts ask while the policy changes and changes back")
	needPrograms(t, "saquery", "ibping")
	r := newRig(t, "")
	hosts := r.hosts()
	storage, red, blue := hosts[1], hosts[4:8], hosts[10:14]
	file := filepath.Join(r.dir, "policy.yaml")
	use := func(standard string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(apart(standard, red, blue, storage)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	use("none")
	verdicts := filepath.Join(r.dir, "verdicts.json")
	master, _ := r.start("", "sh", "-c", "exec "+must(binary())+" run --json --fabric umad --data "+filepath.Join(r.dir, "data")+" --policy "+file+" > "+verdicts)
	r.eventually("a first verdict", func() bool {
		text, _ := os.ReadFile(verdicts) // it is not there at first
		return strings.Contains(string(text), `"verdict": "isolated`)
	})
	r.eventually("the groups of the policy", func() bool {
		return strings.Contains(r.run(red[0].ID, "saquery", "-g").stdout, "ff12:401b:8010::ffff:ffff")
	})
	lids := map[*topology.Node]string{}
	for _, h := range []*topology.Node{storage, red[0], red[1], blue[0], blue[1]} {
		lids[h] = r.lid(h)
	}
	r.wantIndex0(red, "0x8010")
	r.wantIndex0(blue, "0x8020")
	for _, c := range []struct {
		own, other []*topology.Node
		key, store string
	}{{red, blue, "0x8010", "0x0031"}, {blue, red, "0x8020", "0x0032"}} {
		seen := r.sees(c.own[0])
		for _, h := range c.own {
			if !seen[h.Description] {
				t.Errorf("%s does not get %s", c.own[0].Description, h.Description)
			}
		}
		for _, h := range c.other {
			if seen[h.Description] {
				t.Errorf("%s gets %s", c.own[0].Description, h.Description)
			}
		}
		if !seen[storage.Description] || !seen[hosts[0].Description] {
			t.Errorf("%s gets %v, not the storage or the manager", c.own[0].Description, seen)
		}
		path := func(to *topology.Node) output {
			return r.run(c.own[0].ID, "saquery", "-p", "--src-to-dst", lids[c.own[0]]+":"+lids[to])
		}
		r.want(path(c.own[1]).stdout, `^\s*pkey\.+`+c.key+`$`)
		r.want(path(storage).stdout, `(?i)^\s*pkey\.+`+strings.Replace(c.store, "0x00", "0x0*", 1)+`$`)
		if o := path(c.other[0]); strings.Contains(o.stdout, "PathRecord dump") {
			t.Errorf("a path to another tenant:\n%s", o.stdout)
		}
		groups := r.ask(c.own[0].ID, "saquery", "-g")
		r.want(groups, `ff12:401b:`+c.key[2:]+`::ffff:ffff`)
		if n := strings.Count(groups, "MGID"); n != 1 {
			t.Errorf("%s gets %d groups:\n%s", c.own[0].Description, n, groups)
		}
		r.want(r.ask(c.own[0].ID, "saquery", "-c"), `SA ClassPortInfo`)
	}
	_, stop := r.start(red[1].ID, "ibping", "-S")
	defer stop()
	r.eventually("the server of ibping answers", func() bool { return r.run(red[0].ID, "ibping", "-c", "1", "-t", "200", lids[red[1]]).status == 0 })
	r.want(r.ask(red[0].ID, "ibping", "-c", "5", "-f", lids[red[1]]), `^5 packets transmitted, 5 received, 0% packet loss`)
	r.want(r.run(blue[0].ID, "ibping", "-c", "3", "-t", "100", lids[red[1]]).stdout, `^3 packets transmitted, 0 received, 100% packet loss`)

	// Over to the shared default and back; meanwhile hosts ask, and one that gets no
	// answer asks once more. It waits long: on a busy machine an answer that is not lost may
	// take more than the second that saquery waits by itself.
	const changes, wait = 2, 5 * time.Second
	asking := func(host *topology.Node) (failed func() string) {
		log := r.file("asked-"+host.ID, "")
		_, stop := r.start(host.ID, "sh", "-c", "while :; do saquery -t "+fmt.Sprint(wait.Milliseconds())+" -c > /dev/null 2>&1 && echo yes >> "+log+" || echo no >> "+log+"; done")
		return func() string {
			stop()
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			asked := strings.TrimSuffix(string(text), "no\n") // the last one was interrupted
			yes, no := strings.Count(asked, "yes"), strings.Count(asked, "no\n")
			t.Logf("%s asked %d times and was answered %d times", host.Description, yes+no, yes)
			if yes == 0 || no > changes || strings.Contains(asked, "no\nno\n") {
				return fmt.Sprintf("%s was not answered though it asked again: %q", host.Description, asked)
			}
			return ""
		}
	}
	ends := []func() string{asking(red[2]), asking(blue[2]), asking(storage)}
	for _, x := range []struct{ standard, red, blue string }{{"limited", "0x7fff", "0x7fff"}, {"none", "0x8010", "0x8020"}} {
		use(x.standard)
		if err := r.hup(master.Process.Pid); err != nil {
			t.Fatal(err)
		}
		r.eventually("default: "+x.standard, func() bool {
			keys := r.keysOf()
			first := func(h *topology.Node) string { return strings.Fields(keys[h.Ports[1].GUID.String()] + " -")[0] }
			return first(red[3]) == x.red && first(blue[3]) == x.blue && first(red[0]) == x.red
		})
		// Who asked just then has asked again before the next change.
		for _, h := range []*topology.Node{red[3], blue[3]} {
			r.eventually("an answer after the change", func() bool { return r.run(h.ID, "saquery", "-c").status == 0 })
		}
		time.Sleep(wait + time.Second)
	}
	for _, end := range ends {
		if failed := end(); failed != "" {
			t.Error(failed)
		}
	}
}

// wantIndex0 holds index 0 of the tables of hosts against a key.
func (r *rig) wantIndex0(hosts []*topology.Node, key string) {
	r.Helper()
	keys := r.keysOf()
	for _, h := range hosts {
		if got := strings.Fields(keys[h.Ports[1].GUID.String()] + " -")[0]; got != key {
			r.Errorf("%s holds %s at index 0, want %s", h.Description, got, key)
		}
	}
}

// hup has the command inside read its policy again: `sim exec` waits for it, and
// hands signals on.
func (r *rig) hup(pid int) error { return syscall.Kill(pid, syscall.SIGHUP) }
