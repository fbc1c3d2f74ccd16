package ibsimtest

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// bringUps are the topologies that are brought up, generated ones from a node
// that is chosen at random, netfiles from the first. %d is a seed.
var bringUps = []string{
	"fattree,radix=4,levels=2",
	"fattree,radix=6,levels=2",
	"fattree,radix=8,levels=2,hosts=20",
	"fattree,radix=4,levels=3",
	"fattree,radix=12,levels=2,hosts=13",
	"torus,x=3,y=3",
	"torus,x=4,y=2,hosts=2",
	"torus,x=2,y=2,z=2",
	"torus,x=5,y=1,hosts=3",
	"torus,x=3,y=3,z=2",
	"dragonfly,groups=3",
	"dragonfly,groups=4,leafs=1,spines=1,hosts=3",
	"dragonfly,groups=5,leafs=2,spines=2,hosts=1",
	"random,seed=%d,switches=1,hosts=9,extra=0",
	"random,seed=%d,switches=2,hosts=6,extra=12",
	"random,seed=%d,switches=5,hosts=12,ports=8,ca-ports=2",
	"random,seed=%d,switches=6,hosts=8,ca-ports=4,routers=2",
	"random,seed=%d,switches=4,hosts=10,routers=5,extra=9",
	"random,seed=%d,switches=9,hosts=9,ports=6,extra=30,ca-ports=2",
	"random,seed=%d,switches=12,hosts=20,ports=7,extra=5",
	"random,seed=%d,switches=7,hosts=15,ports=9,routers=1,ca-ports=3",
	"random,seed=%d,switches=15,hosts=6,ports=4,extra=40",
	"random,seed=%d,switches=3,hosts=30,ports=40,extra=20",
	"random,seed=%d,switches=8,hosts=16,ports=200,ca-ports=2,routers=2",
	backToBack, oddities, onlySwitches,
}

// Topologies that no generator makes.
const (
	backToBack = `Hca 2 "A"
[1] "B"[1]

Hca 1 "B"
[1] "A"[1]
`
	// LIDs given twice, a switch cabled to itself, a CA with both ports on one
	// switch, an enhanced port 0, and nodes that nobody reaches.
	oddities = `Switch 12 "S1" # "one; of, two: #1" enhanced port 0 lid 3 lmc 0
[1] "A"[1]
[2] "A"[2]
[3] "B"[1] # lid 3 lmc 0 "B" lid 3 4xQDR
[5] "S1"[6]
[6] "S1"[5]
[11] "S2"[1]
[12] "S2"[2]

Switch 3 "S2" # "two" base port 0 lid 900 lmc 0
[1] "S1"[11]
[2] "S1"[12]
[3] "C"[3]

Hca 2 "A" # "host with = marks"
[1] "S1"[1] # lid 900 lmc 0 "S1" lid 3 4xSDR
[2] "S1"[2] # lid 900 lmc 0 "S1" lid 3 4xSDR

Hca 1 "B"
[1] "S1"[3] # lid 3 lmc 0 "S1" lid 3 4xSDR

Hca 3 "C"
[3] "S2"[3]
[1] "far"[1]

Switch 4 "far"
[1] "C"[1]
[2] "D"[1]

Hca 1 "D"
[1] "far"[2]
`
	onlySwitches = `Switch 4 "S1"
[1] "S2"[1]
[2] "S3"[2]

Switch 4 "S2"
[1] "S1"[1]

Switch 4 "S3"
[2] "S1"[2]
`
)

const (
	shortBringUps  = 3  // with -short
	ordinaryRounds = 2  // over all topologies
	soakRounds     = 20 // the same, with IBWARDEN_SOAK
)

// A fabric that ibwarden brings up is as ibwarden says, as a model of the
// policy says, and gives each port the keys that OpenSM gives it.
func TestBringUpAgainstIbsim(t *testing.T) {
	needTools(t)
	cases, rounds := bringUps, ordinaryRounds
	if testing.Short() {
		cases, rounds = cases[len(cases)-shortBringUps:], 1
	}
	if need.Soak() {
		rounds = soakRounds
	}
	for round := range rounds {
		for i, spec := range cases {
			seed := baseSeed() + uint64(round)
			t.Run(fmt.Sprintf("%d/%d", round, i), func(t *testing.T) {
				t.Parallel()
				bringUpBoth(t, spec, rand.New(rand.NewPCG(seed, uint64(i))), seed)
			})
		}
	}
}

func bringUpBoth(t *testing.T, spec string, rng *rand.Rand, seed uint64) {
	if strings.Contains(spec, "%d") {
		spec = fmt.Sprintf(spec, rng.Uint32())
	}
	l := topologyOf(t, spec)
	host := pickHost(rng, spec, l)
	lmc := rng.IntN(4) * rng.IntN(2)
	statements, text := writePolicy(rng, explore(t, l, host))
	defer func() {
		if t.Failed() {
			t.Logf("SOAK_SEED=%d: %s, at node %q, LMC %d, with\n%s", seed, spec, host, lmc, text)
		}
	}()
	checkReader(t, statements, text)

	r := newRig(t, l, host)
	meant := evaluate(statements, r.model)
	conf := r.file("partitions.conf", text)
	r.checkDocument(r.bringUp(conf, "--lmc", strconv.Itoa(lmc)), meant)
	read := r.read(true)
	r.checkKeys("ibwarden", read, meant)
	r.checkPorts(read, lmc)
	r.checkShown(read)
	r.checkConverted(conf, "--lmc", strconv.Itoa(lmc))

	open := newRig(t, l, host)
	open.openSM(text)
	open.checkKeys("OpenSM", open.read(false), evaluate(statements, open.model))
}

// pickHost chooses where the manager lives: often the first node.
func pickHost(rng *rand.Rand, spec string, l *topology.Netlist) string {
	n := l.Nodes[rng.IntN(len(l.Nodes))]
	if isNetfile(spec) || rng.IntN(2) == 0 || n.Type != ib.NodeSwitch && n.Ports[1].Peer == nil {
		return ""
	}
	return n.ID
}

// checkReader holds the model's reader against what the generator meant.
func checkReader(t *testing.T, statements []statement, text string) {
	t.Helper()
	again, err := readConf(text)
	if err != nil {
		t.Fatalf("the model does not read the generator's file: %v", err)
	}
	if a, b := fmt.Sprintf("%+v", dropNobody(statements)), fmt.Sprintf("%+v", dropNobody(again)); a != b {
		t.Fatalf("the model reads the generator's file as\n%s\nwant\n%s", b, a)
	}
}

// dropNobody clears the membership of NONE, which nobody has.
func dropNobody(statements []statement) []statement {
	out := make([]statement, len(statements))
	for i, s := range statements {
		s.members = slices.Clone(s.members)
		for j := range s.members {
			s.members[j].full = s.members[j].full && s.members[j].selector != "NONE"
		}
		out[i] = s
	}
	return out
}

// openSM brings the fabric up with OpenSM.
func (r *rig) openSM(text string) {
	r.Helper()
	if log := r.openSMTakes(text); bytes.Contains(log, []byte("PARSE ERROR")) {
		r.Fatalf("opensm did not take the policy:\n%s", log)
	}
}

// openSMTakes does the same with a policy that OpenSM may not understand, and
// returns its log.
func (r *rig) openSMTakes(text string) (log []byte) {
	r.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), commandTime)
	defer cancel()
	o, err := do(r.sim.OpenSM(ctx, r.host, r.file("partitions.conf", text), "-o"))
	if err != nil || o.status != 0 {
		r.Fatalf("opensm: status %d, %v\n%s%s", o.status, err, o.stdout, o.stderr)
	}
	log, err = os.ReadFile(r.sim.OpenSMLog())
	if err != nil {
		r.Fatal(err)
	}
	if !bytes.Contains(log, []byte("SUBNET UP")) {
		r.Fatalf("opensm did not bring the fabric up:\n%s", log)
	}
	return log
}

// checkDocument checks what `run --json` printed.
func (r *rig) checkDocument(d *document, meant *meaning) {
	r.Helper()
	x := r.model
	fabric := map[string]int{
		"nodes": len(x.nodes), "switches": x.count(ib.NodeSwitch), "cas": x.count(ib.NodeCA),
		"routers": x.count(ib.NodeRouter), "links": x.links,
	}
	if !maps.Equal(d.Fabric, fabric) {
		r.Errorf("fabric %v, want %v", d.Fabric, fabric)
	}
	if len(d.Partitions) != len(meant.partitions) {
		r.Errorf("%d partitions, want %d", len(d.Partitions), len(meant.partitions))
	}
	for _, p := range d.Partitions {
		key, err := strconv.ParseUint(p.PKey, 0, 16)
		want := meant.partitions[uint16(key)]
		if err != nil || want == nil {
			r.Errorf("partition %q has P_Key %q, which the policy does not have", p.Name, p.PKey)
			continue
		}
		full, limited := want.count()
		if p.Full != full || p.Limited != limited || (!want.alike && p.Name != want.name) {
			r.Errorf("partition %q %s: %d full and %d limited members, want %q, %d and %d",
				p.Name, p.PKey, p.Full, p.Limited, want.name, full, limited)
		}
	}
	get, set := 0, 0
	for _, a := range d.SMPs.ByAttribute {
		get, set = get+a.Get, set+a.Set
	}
	if get != d.SMPs.Get || set != d.SMPs.Set || get == 0 || set == 0 {
		r.Errorf("%d Gets and %d Sets, by attribute %d and %d", d.SMPs.Get, d.SMPs.Set, get, set)
	}
	for _, p := range d.Phases {
		if p.Name == "" || p.Seconds < 0 {
			r.Errorf("phases: %v", d.Phases)
		}
	}
	if len(d.Phases) < 3 {
		r.Errorf("only %d phases: %v", len(d.Phases), d.Phases)
	}
	// No switch of ibsim's can check keys; a switch's own port needs no check.
	verdict := "isolated-by-end-ports"
	if x.count(ib.NodeSwitch) == len(x.nodes) {
		verdict = "isolated-unguarded" // there are no keys over a socket without --data
	}
	if d.Proof.Verdict != verdict || len(d.Proof.Reasons) == 0 {
		r.Errorf("verdict %q for reasons %q, want %s", d.Proof.Verdict, d.Proof.Reasons, verdict)
	}
	if n := len(meant.partitions); len(d.Proof.Pairs) != n*(n-1)/2 {
		r.Errorf("%d pairs of %d partitions", len(d.Proof.Pairs), n)
	}
}

// checkKeys holds the tables against the model: end ports, and the switch
// ports that face them.
func (r *rig) checkKeys(who string, read *reading, meant *meaning) {
	r.Helper()
	for _, e := range r.model.ends {
		want := meant.table(e)
		if !slices.Equal(read.keys[e], want) {
			r.Errorf("%s gives port %v %s, want %s", who, e, keysText(read.keys[e]), keysText(want))
		}
		if e.facing != nil && !slices.Equal(read.guard[e], want) {
			r.Errorf("%s gives switch port %v, which faces %v, %s, want %s", who, e.facing, e, keysText(read.guard[e]), keysText(want))
		}
	}
}

// checkPorts checks addresses and states.
func (r *rig) checkPorts(read *reading, lmc int) {
	r.Helper()
	owner := map[int]*endPort{}
	self := read.ports[r.model.self].lid
	for _, e := range r.model.ends {
		s := read.ports[e]
		wantLMC := lmc
		if e.isSwitch() && !e.node.EnhancedPort0 {
			wantLMC = 0
		}
		if s.lmc != wantLMC || s.lid%(1<<wantLMC) != 0 {
			r.Errorf("port %v has LID %d and LMC %d, want LMC %d", e, s.lid, s.lmc, wantLMC)
		}
		for lid := s.lid; lid < s.lid+1<<s.lmc; lid++ {
			if other := owner[lid]; other != nil || lid < 1 || lid >= 0xC000 {
				r.Errorf("port %v has LID %d, of port %v", e, lid, other)
			}
			owner[lid] = e
		}
		if s.masterLID != self {
			r.Errorf("port %v has master LID %d, want %d", e, s.masterLID, self)
		}
		if s.logical != "Active" || s.physical != "LinkUp" {
			r.Errorf("port %v is %s and %s", e, s.logical, s.physical)
		}
	}
}

// checkConverted checks that the policy turned into YAML asks for the same
// tables.
func (r *rig) checkConverted(conf string, args ...string) {
	r.Helper()
	o := r.warden("policy", "convert", conf)
	if o.status != 0 {
		r.Fatalf("policy convert: exit status %d\n%s", o.status, o.stderr)
	}
	if n := r.bringUp(r.file("policy.yaml", o.stdout), args...).sets()["PKeyTable"]; n != 0 {
		r.Errorf("the same policy as YAML took %d Sets of P_KeyTable:\n%s", n, o.stdout)
	}
}

// Rows of `ibwarden show --json`.
type (
	pkeyRow struct {
		Node  string
		Port  int
		GUID  *string
		PKeys []struct {
			Index int
			PKey  string
		}
	}
	lidRow struct {
		LID, LMC    int
		GUID        string
		MasterSMLID int `json:"master_sm_lid"`
	}
	portRow struct {
		Node          string
		Port          int
		GUID          *string
		LID           int
		State         string
		PhysicalState string `json:"physical_state"`
		Peer          *string
	}
)

// checkShown holds `ibwarden show` against smpquery.
func (r *rig) checkShown(read *reading) {
	r.Helper()
	tables := map[string]string{}
	for _, row := range show[pkeyRow](r, "pkeys") {
		var keys []uint16
		for _, entry := range row.PKeys {
			var key uint16
			if n, err := fmt.Sscanf(entry.PKey, "0x%x", &key); n != 1 || err != nil || entry.Index < len(keys) {
				r.Fatalf("show pkeys: entry %+v of %s:%d", entry, row.Node, row.Port)
			}
			keys = append(append(keys, make([]uint16, entry.Index-len(keys))...), key)
		}
		tables[fmt.Sprintf("%s:%d", row.Node, row.Port)] = keysText(keys)
	}
	lids := map[string]lidRow{}
	for _, row := range show[lidRow](r, "lids") {
		lids[row.GUID] = row
	}
	ports := map[string]portRow{}
	for _, row := range show[portRow](r, "ports") {
		ports[fmt.Sprintf("%s:%d", row.Node, row.Port)] = row
	}
	guards := 0
	for _, e := range r.model.ends {
		s := read.ports[e]
		if got := tables[e.String()]; got != keysText(read.keys[e]) {
			r.Errorf("show pkeys has %s for port %v, smpquery %s", got, e, keysText(read.keys[e]))
		}
		if e.facing != nil {
			guards++
			if got := tables[e.facing.String()]; got != keysText(read.guard[e]) {
				r.Errorf("show pkeys has %s for switch port %v, smpquery %s", got, e.facing, keysText(read.guard[e]))
			}
		}
		if got, want := lids[guidText(e.guid)], (lidRow{s.lid, s.lmc, guidText(e.guid), s.masterLID}); got != want {
			r.Errorf("show lids has %+v, smpquery %+v", got, want)
		}
		p := ports[e.String()]
		if p.GUID == nil || *p.GUID != guidText(e.guid) || p.LID != s.lid || p.State != s.logical || p.PhysicalState != s.physical {
			r.Errorf("show ports has %+v for port %v, smpquery %+v", p, e, s)
		}
	}
	if len(lids) != len(r.model.ends) || len(tables) != len(r.model.ends)+guards {
		r.Errorf("show has %d LIDs and %d tables, want %d and %d", len(lids), len(tables), len(r.model.ends), len(r.model.ends)+guards)
	}
	for _, at := range r.model.external {
		p, shown := ports[at.String()]
		switch peer := at.node.Ports[at.port].Peer; {
		case peer == nil && shown:
			r.Errorf("show ports has port %v, which has no cable", at)
		case peer != nil && (p.State != "Active" || p.PhysicalState != "LinkUp" || p.Peer == nil):
			r.Errorf("show ports has %+v for port %v", p, at)
		}
	}
}
