package consoletest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// demonstrationPolicy is the policy of the examples, in a directory whose name is too long for a
// narrow window: pages show it.
func demonstrationPolicy(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "tenants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 20))
	path := filepath.Join(dir, "tenants.yaml")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(path, text, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// demonstration is the demonstration fabric with its policy, a tenant made by the API, with
// a partition of its own, and a token.
func demonstration(t testing.TB) *site { return demonstrationWith(t) }

func demonstrationWith(t testing.TB, flags ...string) *site {
	t.Helper()
	s := newSite(t, topology.Demo(), append(flags, "--policy", demonstrationPolicy(t))...)
	s.tenant("green", "0x100", "red-5", "red-6", "blue-5")
	return s
}

// reason is why tests change what they change.
const reason = "a customer came"

// tenant makes a tenant with a range of 16 keys, ports, and a partition of them.
func (s *site) tenant(name, firstKey string, hosts ...string) {
	s.Helper()
	var first uint32
	if _, err := fmt.Sscanf(firstKey, "0x%x", &first); err != nil {
		s.Fatal(err)
	}
	s.do("PUT", "/tenants/"+name, js{"keys": js{"first": fmt.Sprintf("0x%04x", first), "last": fmt.Sprintf("0x%04x", first+15)}}, "If-None-Match", "*", "Why", reason)
	var ports, members []js
	for _, h := range hosts {
		ports = append(ports, js{"guid": s.guid(h)})
		members = append(members, js{"port": s.guid(h), "membership": "full"})
	}
	s.do("POST", "/ports/assign", js{"tenant": name, "ports": ports}, "Why", reason)
	s.do("PUT", fmt.Sprintf("/partitions/0x%04x", first), js{"name": name + "-all", "owner": name, "members": members}, "If-None-Match", "*", "Why", reason)
}

// proved waits until the last revision is proved on the fabric.
func (s *site) proved() {
	s.Helper()
	s.eventually("the last revision is proved", func() error {
		last := s.do("GET", "/revisions?limit=1", nil)["items"].([]any)[0].(js)
		outcome, _ := last["outcome"].(js)
		if state := fmt.Sprint(outcome["state"]); state != "proved" {
			return fmt.Errorf("revision %v is %s", last["number"], state)
		}
		return nil
	})
}

// faulty is the demonstration with what goes wrong: a cable pulled, two hosts cabled the
// other way round, a host whose key table cannot be read, and one that holds a key of
// another tenant and lies to the manager.
func faulty(t testing.TB) *site {
	t.Helper()
	s := newSite(t, topology.Demo(), "--policy", demonstrationPolicy(t), "--drift-period", "1s", "--sweep-interval", "1s")
	leaf, a, b := s.node("leaf-1"), s.node("storage-3"), s.node("blue-3")
	s.on(func(f *fabric.Fabric) error {
		return errors.Join(
			f.Unlink(leaf.GUID, 5),
			f.Swap(a.GUID, 1, b.GUID, 1),
			f.SetFault(s.node("blue-1").GUID, fabric.Fault{Alter: addKey(0x8010)}),
			f.SetFault(s.node("red-4").GUID, fabric.Fault{Drop: func(_ time.Duration, _ ib.PortNum, m *[mad.Size]byte) bool { return isPKeyTable(m) }}),
		)
	})
	s.verdict("violated")
	return s
}

func isPKeyTable(m *[mad.Size]byte) bool {
	var p mad.SMP
	return p.UnmarshalBinary(m[:]) == nil && p.AttributeID == smp.AttrPKeyTable
}

// addKey has a host show a key that nobody gave it.
func addKey(key ib.PKey) func(time.Duration, *[mad.Size]byte) {
	return func(_ time.Duration, m *[mad.Size]byte) {
		if !isPKeyTable(m) {
			return
		}
		data := m[64:] // of the attribute: 32 keys of 2 bytes
		data[2*31], data[2*31+1] = byte(key>>8), byte(key)
	}
}

// manyTenants is a fat tree with 40 tenants of three hosts each, some of which share a
// partition of the provider's.
func manyTenants(t testing.TB) *site {
	t.Helper()
	net, err := topology.Generate("fattree,radix=16,levels=2")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, net)
	var hosts []string
	for _, n := range s.server.Topology().Nodes {
		if n.Type == ib.NodeCA {
			hosts = append(hosts, n.ID)
		}
	}
	r := rand.New(rand.NewPCG(1, 19))
	r.Shuffle(len(hosts)-1, func(i, j int) { hosts[i+1], hosts[j+1] = hosts[j+1], hosts[i+1] }) // the first is the manager's
	var shared []js
	for i := range 40 {
		own := hosts[1+3*i : 4+3*i]
		s.tenant(fmt.Sprintf("tenant-%02d", i+1), fmt.Sprintf("0x%x", 0x100+0x10*i), own...)
		if i%5 == 0 {
			shared = append(shared, js{"port": s.guid(own[0]), "membership": "limited"})
		}
	}
	s.do("PUT", "/partitions/0x0050", js{"name": "backup", "members": append(shared, js{"port": s.guid(hosts[126]), "membership": "full"})}, "If-None-Match", "*")
	s.proved()
	return s
}

// hostile are texts that a device or a person may enter where no letters are forbidden.
var hostile = []string{
	`<script>alert("script")</script>`,
	`"><img src=x onerror=alert('img')>`,
	`</title><svg onload=alert('svg')>`,
	`javascript:alert('url')//`,
	"left \u202eright-to-left\u202c \u2066iso",
	"\x1b[31mred\x07\r\n\x7f\u200bend",
	`${alert('template')} {{7*7}} %s &lt;b&gt; &#x3c;`,
	"http://tracker.example/?from=console",
}

// junk has a device call itself by 64 bytes that are no text.
func junk(_ time.Duration, m *[mad.Size]byte) {
	var p mad.SMP
	if p.UnmarshalBinary(m[:]) != nil || p.AttributeID != smp.AttrNodeDescription {
		return
	}
	for i := range 64 {
		m[64+i] = byte(0xFF - i)
	}
}
