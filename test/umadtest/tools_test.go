package umadtest

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// fabrics are those on which every tool runs: several hops, two ways round,
// links of today's speeds, and the size at which answers of subnet
// administration have hundreds of segments.
var fabrics = []struct {
	spec  string
	large bool // leave the dear tools to soak
}{
	{"", false},
	{"torus,x=3,y=3,hosts=2", false},
	{"fattree,radix=36,levels=2", true},
}

// TestTools runs Debian's tools, unmodified, beside Debian's OpenSM.
func TestTools(t *testing.T) {
	need.Long(t, "every tool")
	needPrograms(t, "opensm", "smpquery", "ibnetdiscover", "perfquery", "ibqueryerrors", "iblinkinfo", "sminfo", "ibping", "saquery", "ibstat", "ibtracert")
	for _, f := range fabrics {
		t.Run(f.spec, func(t *testing.T) {
			r := newRig(t, f.spec)
			hosts := r.hosts()
			stop := r.openSM("")
			defer stop()
			lids := r.lids()
			near, far := hosts[0], hosts[len(hosts)-1]
			t.Run("ibqueryerrors", func(t *testing.T) { r.in(t).ibqueryerrors() })
			t.Run("ibstat", func(t *testing.T) { r.in(t).ibstat(near, lids) })
			t.Run("sminfo", func(t *testing.T) { r.in(t).sminfo(near, far, lids) })
			t.Run("smpquery", func(t *testing.T) { r.in(t).smpquery(far, lids) })
			t.Run("ibnetdiscover", func(t *testing.T) { r.in(t).ibnetdiscover() })
			t.Run("iblinkinfo", func(t *testing.T) { r.in(t).iblinkinfo() })
			t.Run("saquery", func(t *testing.T) { r.in(t).saquery(near, far, lids, f.large) })
			t.Run("ibtracert", func(t *testing.T) { r.in(t).ibtracert(near, far, lids) })
			t.Run("ibping", func(t *testing.T) { r.in(t).ibping(near, far, lids) })
		})
	}
}

// in is the rig for a test inside the one that made it.
func (r *rig) in(t testing.TB) *rig {
	inner := *r
	inner.TB = t
	return &inner
}

// want looks for an expression in what a program printed.
func (r *rig) want(text, expression string) {
	r.Helper()
	if !regexp.MustCompile("(?m)" + expression).MatchString(text) {
		if len(text) > 3000 {
			text = text[:3000] + " [...]"
		}
		r.Errorf("no %q in\n%s", expression, text)
	}
}

var nodeRecord = regexp.MustCompile(`(?m)^\s*lid\.+(\d+)\n[\s\S]*?node_guid\.+(0x[0-9a-f]+)`)

// lids are the LIDs by node GUID, as subnet administration tells them in one
// long answer.
func (r *rig) lids() map[string]int {
	r.Helper()
	lids := map[string]int{}
	r.eventually("subnet administration knows all nodes", func() bool {
		for _, m := range nodeRecord.FindAllStringSubmatch(r.ask("", "saquery", "NR"), -1) {
			lids[m[2]], _ = strconv.Atoi(m[1]) // digits
		}
		return len(lids) >= len(r.topology.Nodes)
	})
	for _, n := range r.topology.Nodes {
		if lids[n.GUID.String()] == 0 {
			r.Errorf("saquery NR: no LID for node %v (%s)", n.GUID, n.Description)
		}
	}
	if len(lids) != len(r.topology.Nodes) {
		r.Errorf("saquery NR: %d nodes, want %d", len(lids), len(r.topology.Nodes))
	}
	return lids
}

func (r *rig) ibstat(at *topology.Node, lids map[string]int) {
	text := r.ask(at.ID, "ibstat")
	for _, line := range []string{
		`State: Active`, `Physical state: LinkUp`, fmt.Sprintf(`Base lid: %d`, lids[at.GUID.String()]), `SM lid: 1`,
		`Port GUID: ` + at.Ports[1].GUID.String(), `Node GUID: ` + at.GUID.String(), `Link layer: InfiniBand`, `Number of ports: 1`,
	} {
		r.want(text, `^\s*`+line+`$`)
	}
	r.want(r.ask(at.ID, "ibstat", "-p"), `^`+at.Ports[1].GUID.String()+`$`)
}

func (r *rig) sminfo(near, far *topology.Node, lids map[string]int) {
	want := fmt.Sprintf(`^sminfo: sm lid %d sm guid 0x%x, activity count \d+ priority 0 state 3 SMINFO_MASTER$`,
		lids[near.GUID.String()], uint64(near.Ports[1].GUID))
	for _, at := range []*topology.Node{near, far} {
		r.want(r.ask(at.ID, "sminfo"), want)
	}
	// Where no manager is, nobody answers for one.
	if o := r.run("", "sminfo", strconv.Itoa(lids[far.GUID.String()])); o.status == 0 {
		r.Errorf("sminfo of a host without a manager: %s", o.stdout)
	}
}

func (r *rig) smpquery(far *topology.Node, lids map[string]int) {
	lid := strconv.Itoa(lids[far.GUID.String()])
	info := r.ask("", "smpquery", "nodeinfo", lid)
	r.want(info, `^NodeType:\.+Channel Adapter$`)
	r.want(info, `^Guid:\.+`+far.GUID.String()+`$`)
	r.want(info, `^PortGuid:\.+`+far.Ports[1].GUID.String()+`$`)
	r.want(r.ask("", "smpquery", "nodedesc", lid), `^Node Description:\.+`+regexp.QuoteMeta(far.Description)+`$`)
	r.want(r.ask("", "smpquery", "-G", "nodedesc", far.Ports[1].GUID.String()), regexp.QuoteMeta(far.Description)+`$`)
	port := r.ask("", "smpquery", "portinfo", lid, "1")
	r.want(port, `^Lid:\.+`+lid+`$`)
	r.want(port, `^LinkState:\.+Active$`)
	r.want(port, `^SMLid:\.+1$`)
	r.want(r.ask("", "smpquery", "pkeys", lid), `^\s*0: 0xffff 0x0000`)
	leaf := r.hosts()[0].Ports[1].Peer
	switchInfo := r.ask("", "smpquery", "-D", "switchinfo", "0,1")
	r.want(switchInfo, `^LinearFdbCap:\.+[1-9]`)
	r.want(r.ask("", "smpquery", "-D", "nodedesc", "0,1"), regexp.QuoteMeta(leaf.Description)+`$`)
	r.want(r.ask("", "smpquery", "-D", "guidinfo", "0"), fmt.Sprintf(`(?i)0: 0x%016x`, uint64(r.hosts()[0].Ports[1].GUID)))
	r.want(r.ask("", "smpquery", "sl2vl", lid), `\|\s*0\|`)
	r.want(r.ask("", "smpquery", "vlarb", lid), `VLArbitration tables`)
	if o := r.run("", "smpquery", "-t", "50", "nodeinfo", "40000"); o.status == 0 || !strings.Contains(o.stderr, "_do_madrpc failed") {
		r.Errorf("smpquery of a LID that nobody has: status %d, %s", o.status, o.stderr)
	}
	// It asked up to three times (libibmad gives up when its own clock is the
	// first to run out), and the first switch had no way to there.
	o := r.run("", "ibqueryerrors", "-s", "LinkDownedCounter,PortXmitDiscards")
	r.want(o.stdout, `^\s*GUID `+fmt.Sprintf("0x%x", uint64(leaf.GUID))+` port \d+: \[PortRcvSwitchRelayErrors == [1-3]( \([1-3]\.000\))?\]$`)
}

// cables lists the cables of a topology, by GUIDs.
func cables(l *topology.Netlist) (out []string) {
	for _, n := range l.Nodes {
		for num := range n.Ports {
			if p := &n.Ports[num]; p.Peer != nil && (n.GUID < p.Peer.GUID || n.GUID == p.Peer.GUID && num < int(p.PeerPort)) {
				out = append(out, fmt.Sprintf("%v[%d] %v[%d]", n.GUID, num, p.Peer.GUID, p.PeerPort))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r *rig) ibnetdiscover() {
	text := r.ask("", "ibnetdiscover")
	got, _, err := topology.Read([]byte(text), "ibnetdiscover", nil)
	if err != nil {
		r.Fatal(err)
	}
	if len(got.Nodes) != len(r.topology.Nodes) {
		r.Errorf("%d nodes, want %d", len(got.Nodes), len(r.topology.Nodes))
	}
	if !slices.Equal(cables(got), cables(r.topology)) {
		r.Errorf("%d cables, want the %d of the topology, each where it is", len(cables(got)), len(cables(r.topology)))
	}
}

func (r *rig) iblinkinfo() {
	var text string
	ends := 2 * len(r.topology.Links())
	r.eventually("all ends of links are Active", func() bool {
		text = r.ask("", "iblinkinfo")
		return strings.Count(text, "Active/  LinkUp") == ends
	})
	rate := `4X +2\.5 Gbps`
	if r.topology.Nodes[0].Ports[1].Enabled != topology.DefaultRates {
		rate = `4X +53\.125 Gbps` // the demonstration has HDR
	}
	r.want(text, rate)
}

func (r *rig) saquery(near, far *topology.Node, lids map[string]int, large bool) {
	from, to := lids[near.GUID.String()], lids[far.GUID.String()]
	path := r.ask(near.ID, "saquery", "-p", "--src-to-dst", fmt.Sprintf("%d:%d", from, to))
	r.want(path, fmt.Sprintf(`^\s*dlid\.+%d$`, to))
	r.want(path, fmt.Sprintf(`^\s*slid\.+%d$`, from))
	r.want(path, `^\s*pkey\.+0xFFFF$`)
	r.want(r.ask(far.ID, "saquery", "-s"), fmt.Sprintf(`IsSM ports\s+PortInfoRecord dump:\s+EndPortLid\.+%d`, from))
	r.want(r.ask(far.ID, "saquery", "-c"), `SA ClassPortInfo`)
	ports := 0
	for _, n := range r.topology.Nodes {
		if ports += len(n.Ports) - 1; n.IsEndPort(0) {
			ports++ // port 0
		}
	}
	if got := strings.Count(r.ask(far.ID, "saquery", "PIR"), "PortInfoRecord dump"); got != ports {
		r.Errorf("saquery PIR: %d records, want %d", got, ports)
	}
	if large {
		return
	}
	all := len(r.topology.Nodes)
	if got := strings.Count(r.ask(far.ID, "saquery", "-p"), "PathRecord dump"); got != all*all {
		r.Errorf("saquery -p: %d paths, want %d", got, all*all)
	}
}

func (r *rig) ibtracert(near, far *topology.Node, lids map[string]int) {
	text := r.ask(near.ID, "ibtracert", strconv.Itoa(lids[near.GUID.String()]), strconv.Itoa(lids[far.GUID.String()]))
	r.want(text, fmt.Sprintf(`^From ca \{%v\} portnum 1`, near.GUID))
	r.want(text, fmt.Sprintf(`^To ca \{%v\} portnum 1`, far.GUID))
}

// ibping has a server of its own, and the packets are found in the counters.
func (r *rig) ibping(near, far *topology.Node, lids map[string]int) {
	const count = 5
	lid := strconv.Itoa(lids[far.GUID.String()])
	_, stop := r.start(far.ID, "ibping", "-S")
	defer stop()
	r.eventually("the server of ibping answers", func() bool { return r.run(near.ID, "ibping", "-c", "1", "-t", "200", lid).status == 0 })
	r.ask(near.ID, "perfquery", "-R", lid, "1")
	r.want(r.ask(near.ID, "ibping", "-c", strconv.Itoa(count), "-f", lid), fmt.Sprintf(`^%d packets transmitted, %d received, 0%% packet loss`, count, count))
	counters := r.ask(near.ID, "perfquery", lid, "1")
	for _, name := range []string{"PortXmitPkts", "PortRcvPkts"} {
		m := regexp.MustCompile(name + `:\.+(\d+)`).FindStringSubmatch(counters)
		if m == nil {
			r.Fatalf("no %s in\n%s", name, counters)
		}
		if n, _ := strconv.Atoi(m[1]); n < count || n > 2*count+8 {
			r.Errorf("%s %d after %d pings and two queries", name, n, count)
		}
	}
	r.want(r.ask(near.ID, "ibping", "-c", "1", "-f", "-G", far.Ports[1].GUID.String()), `^1 packets transmitted, 1 received`)
}

func (r *rig) ibqueryerrors() {
	// OpenSM takes each link down once to give its ends LIDs, which counts; a query of
	// openSM's that came before the last link was Active was dropped, and so is a trap
	// of a switch, which the next switch could not yet forward.
	o := r.run("", "ibqueryerrors", "-s", "LinkDownedCounter,PortXmitDiscards,PortRcvSwitchRelayErrors")
	r.want(o.stdout, fmt.Sprintf(`^## Summary: %d nodes checked, 0 bad nodes found$`, len(r.topology.Nodes)))
	ends := 2 * len(r.topology.Links())
	r.want(o.stdout, fmt.Sprintf(`^## +%d ports checked, 0 ports have errors beyond threshold$`, ends))
	if o.status != 0 {
		r.Errorf("exit status %d", o.status)
	}
}

// ibdiagnetTries bounds how often it is asked: ibdiagnet 1.5.7 loses answers
// that come before its own thread is back from sending, although each is read.
const ibdiagnetTries = 8

// TestIbdiagnet runs where links have the speeds that ibdiagnet 1.5.7 knows.
func TestIbdiagnet(t *testing.T) {
	need.Long(t, "ibdiagnet, many times")
	needPrograms(t, "opensm", "ibdiagnet")
	specs := []string{"fattree,radix=6,levels=2"}
	if need.Soak() {
		specs = append(specs, "torus,x=4,y=4,hosts=2", "fattree,radix=36,levels=2")
	}
	for _, spec := range specs {
		t.Run(spec, func(t *testing.T) {
			r := newRig(t, spec)
			defer r.openSM("")()
			hosts := len(r.hosts())
			var text string
			for range ibdiagnetTries {
				if text = r.run("", "ibdiagnet", "-o", filepath.Join(r.dir, "diag")).stdout; !strings.Contains(text, "\n-E-") {
					break
				}
			}
			r.want(text, fmt.Sprintf(`%d nodes \(%d Switches & %d CA-s\) discovered\.\s*$`, len(r.topology.Nodes), len(r.topology.Nodes)-hosts, hosts))
			for _, line := range []string{
				`No bad Guids were found`, `No bad Links \(with logical state = INIT\) were found`,
				`No illegal PM counters values were found`, fmt.Sprintf(`PKey:0x7fff Hosts:%d full:%d limited:0`, hosts, hosts),
			} {
				r.want(text, line)
			}
			if i := strings.Index(text, "\n-E-"); i >= 0 {
				t.Errorf("after %d tries: %s", ibdiagnetTries, text[i:])
			}
		})
	}
}
