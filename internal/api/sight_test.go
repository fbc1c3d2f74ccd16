package api

import (
	"fmt"
	"maps"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// The tenants of these tests. Their names, and those of all else, are words that no answer
// has by chance.
const (
	rubin   = "rubin"   // invites
	saphir  = "saphir"  // is invited
	smaragd = "smaragd" // has no part in it
)

// lair is a stand on which every fact can be found in an answer, and a model of who agreed
// to what: it says who may know which.
type lair struct {
	*stand
	ports   []*lairPort
	parts   map[string]lairPart               // by number, as 0x0100
	members map[string]map[string]*lairMember // by number and GUID
	told    map[string]map[string]bool        // by tenant: what the history tells it for ever
	own     map[string]string                 // by tenant: one of its partitions
	token   map[string]string                 // by tenant: the ID of a token
	// subjects are the ports that the requests are about; nil for all. Answers are searched for the
	// facts of every port.
	subjects []*lairPort
	secrets  map[string][]string // foreign, as long as nothing changes
	typed    map[string]string   // by tenant: what it said in writes, which the audit log may repeat
	waiting  string              // the ID of an approval of smaragd
}

// lairPort is an end port with its facts.
type lairPort struct {
	port                  *observed.Port
	guid, node, name, lid string
	owner                 string
}

type lairPart struct{ owner, name string }

// lairMember is who agreed that a port is a member.
type lairMember struct{ byPart, byPort bool }

// names are what nodes say of themselves: none is like another.
var lairNames = strings.Fields("vxajqoid kufzebwh mpygtrel ohwnicsa tezubkaf yiplrqum dwasvoxn gejhifyt bolxamcu rutnepdi fyvkogaz hamzisqe " +
	"xedrujop nikwybal qosfatge zulcimhv pagoxewr wimdytuk jofheqna esnivzab lyrbukto cadgomix ubthazen ikqeslow")

// lairLIDs is the first LID; the answers have no other numbers of this size.
const lairLIDs = 40_000

func newLair(t testing.TB) *lair {
	w := &lair{stand: newStand(t), parts: map[string]lairPart{}, members: map[string]map[string]*lairMember{}, told: map[string]map[string]bool{}, own: map[string]string{}, token: map[string]string{}, typed: map[string]string{}}
	moved := map[ib.LID]ib.LID{}
	for i, p := range w.manager.snap.Fabric.EndPorts() {
		moved[p.Info.LID] = ib.LID(lairLIDs + 7*i)
		p.Info.LID = moved[p.Info.LID]
		if p.Node.Description = lairNames[i]; p.Node.Switch == nil {
			p.Node.Description += " HCA-1"
		}
		w.ports = append(w.ports, &lairPort{p, p.GUID.String(), p.Node.GUID().String(), lairNames[i], fmt.Sprint(p.Info.LID), resource.Provider})
	}
	for _, n := range w.manager.snap.Fabric.Switches() {
		n.Switch.LFT, n.Switch.LFTRead = relabelled(n.Switch.LFT, moved)
		n.Switch.Info.LinearFDBTop = ib.LID(len(n.Switch.LFT) - 1)
	}
	for i, name := range []string{rubin, saphir, smaragd} {
		w.tenant(name, i)
	}
	w.tokens["reader"] = w.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": rubin, "read_only": true}})["secret"].(string)
	for as, k := range boundTo {
		w.tokens[as] = w.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": boundFor[as], "keys": js{"first": k, "last": k}}})["secret"].(string)
	}
	w.tokens["provider"] = w.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": resource.Provider}})["secret"].(string)
	w.partition("provider", "0x0400", "kobold")
	w.own[resource.Provider] = "0x0400"
	w.agree("0x0400", w.ports[1], w.ports[4], w.ports[8])
	w.agree("0x0200", w.ports[8], w.ports[13])
	w.tell()
	w.follow()
	return w
}

// tenant makes a tenant with three ports, a partition with the first two, and another that is empty.
func (w *lair) tenant(name string, i int) {
	keys := js{"first": fmt.Sprintf("0x%02x00", i+1), "last": fmt.Sprintf("0x%02xff", i+1)}
	w.want(201, call{method: "PUT", path: "/tenants/" + name, body: js{"keys": keys, "approve_removals": name == smaragd, "labels": js{"mark": lairLabels[name]}}})
	var ports []js
	for _, p := range w.ports[4*i+4 : 4*i+7] {
		p.owner = name
		ports = append(ports, js{"guid": p.guid})
	}
	w.want(200, call{method: "POST", path: "/ports/assign", body: js{"tenant": name, "ports": ports}})
	made := w.want(201, call{method: "POST", path: "/tokens", body: js{"tenant": name}})
	w.tokens[name], w.token[name] = made["secret"].(string), made["token"].(js)["id"].(string)
	k := fmt.Sprintf("0x%02x00", i+1)
	w.own[name] = k
	w.partition(name, k, []string{"gnomus", "sylphe", "undine"}[i])
	w.partition(name, k[:5]+"1", []string{"faunus", "dryade", "nereus"}[i])
	w.agree(k, w.ports[4*i+4], w.ports[4*i+5])
	if name == smaragd {
		w.waiting = w.want(202, call{as: name, method: "DELETE", path: "/partitions/" + k[:5] + "1"})["approval"].(string)
	}
}

func (w *lair) partition(owner, k, name string) {
	w.want(201, call{as: owner, method: "PUT", path: "/partitions/" + k, body: js{"name": name, "labels": js{"mark": lairLabels[owner]}}})
	w.parts[k], w.members[k] = lairPart{owner, name}, map[string]*lairMember{}
}

// relabelled is a forwarding table after LIDs have moved.
func relabelled(table []ib.PortNum, moved map[ib.LID]ib.LID) (out []ib.PortNum, read []bool) {
	out = slices.Repeat([]ib.PortNum{ib.PortNone}, (lairLIDs+1000)/64*64)
	for lid, port := range table {
		if to, is := moved[ib.LID(lid)]; is {
			out[to] = port
		}
	}
	return out, slices.Repeat([]bool{true}, len(out)/64)
}

// boundTo are the callers that are bound to a partition, and boundFor for whom they act.
var (
	boundTo  = map[string]string{"bound": "0x0100", "bound provider": "0x0400"}
	boundFor = map[string]string{"bound": rubin, "bound provider": resource.Provider}
)

// beyond lists what a caller who is bound to a partition reads in an answer of the others. What
// it said itself it knows.
func (w *lair) beyond(as, request string, answer *httptest.ResponseRecorder) (list []string) {
	only := boundTo[as]
	if only == "" {
		return nil
	}
	text := strings.ToLower(answer.Body.String())
	for k, part := range w.parts {
		for _, fact := range []string{part.name, k, "0x8" + k[3:], `"0x` + strings.TrimLeft(k[2:], "0") + `"`} {
			if k != only && strings.Contains(text, fact) && !strings.Contains(request, fact) {
				list = append(list, fact)
			}
		}
	}
	return list
}

// put has a tenant ask for a port in a partition, or agree that it is there. To bring back what was
// removed takes the ETag of the partition.
func (w *lair) put(as, k string, p *lairPort) *httptest.ResponseRecorder {
	c := call{as: as, method: "PUT", path: "/partitions/" + k + "/members/" + p.guid, body: js{"membership": "full"}}
	out := w.do(c)
	if out.Code == 428 {
		c.header = map[string]string{"If-Match": w.do(call{as: as, method: "GET", path: "/partitions/" + k}).Header().Get("ETag")}
		out = w.do(c)
	}
	return out
}

// consents enters what put came to, if it was accepted.
func (w *lair) consents(as, k string, p *lairPort) {
	m := w.members[k][p.guid]
	if m == nil {
		m = &lairMember{}
		w.members[k][p.guid] = m
	}
	both := as == resource.Provider && w.parts[k].owner == p.owner // then the provider speaks for the tenant
	m.byPart, m.byPort = m.byPart || both || w.parts[k].owner == as, m.byPort || both || p.owner == as
	w.tell()
}

// agree has both owners agree that ports are members.
func (w *lair) agree(k string, ports ...*lairPort) {
	w.Helper()
	for _, p := range ports {
		for _, as := range []string{w.parts[k].owner, p.owner} {
			if out := w.put(as, k, p); out.Code != 200 && out.Code != 201 {
				w.Fatalf("%s of %s: %d %s", p.guid, k, out.Code, out.Body)
			}
			w.consents(as, k, p)
		}
	}
}

// tell notes what the history now tells tenants: of members in their partitions and of their
// ports, with the partition and its owner.
func (w *lair) tell() {
	w.secrets = map[string][]string{}
	note := func(tenant string, what ...string) {
		if w.told[tenant] == nil {
			w.told[tenant] = map[string]bool{}
		}
		for _, x := range what {
			w.told[tenant][x] = true
		}
	}
	for _, p := range w.ports {
		note(p.owner, p.guid)
	}
	for k, list := range w.members {
		for guid := range list {
			for _, tenant := range []string{w.parts[k].owner, w.port(guid).owner} {
				note(tenant, guid, k, w.parts[k].name, w.parts[k].owner)
			}
		}
	}
}

func (w *lair) port(guid string) *lairPort {
	return w.ports[slices.IndexFunc(w.ports, func(p *lairPort) bool { return p.guid == guid })]
}

// follow has every port hold the keys that the model gives it.
func (w *lair) follow() {
	for _, p := range w.ports {
		keys := []ib.PKey{ib.PKeyBaseDefault.Limited()}
		for k, list := range w.members {
			if m := list[p.guid]; m != nil && m.byPart && m.byPort {
				keys = append(keys, base(k).Full())
			}
		}
		slices.Sort(keys)
		subnettest.SetPKeys(p.port, keys...)
		if p.port.Peer != nil {
			guard := slices.Clone(keys)
			for i := range guard {
				guard[i] |= 0x8000
			}
			subnettest.SetPKeys(p.port.Peer, guard...)
		}
	}
	w.reread()
}

// reread has the fabric read again: what was concluded from the last reading counts no more.
func (w *lair) reread() {
	w.secrets = map[string][]string{}
	again := *w.manager.snap
	w.manager.snap = &again
}

func base(k string) ib.PKeyBase {
	n, err := strconv.ParseUint(k, 0, 16)
	if err != nil {
		panic(err)
	}
	return ib.PKeyBase(n)
}

// sees reports whether a tenant knows of a partition: it owns it, or a port in it or that is asked for.
func (w *lair) sees(tenant, k string) bool {
	for guid := range w.members[k] {
		if w.port(guid).owner == tenant {
			return true
		}
	}
	return w.parts[k].owner == tenant
}

// lent reports whether a port is in a partition of a tenant, to which both owners agreed.
func (w *lair) lent(tenant string, p *lairPort) bool {
	for k, list := range w.members {
		if m := list[p.guid]; m != nil && m.byPart && m.byPort && w.parts[k].owner == tenant {
			return true
		}
	}
	return false
}

// asked reports whether a port is in a partition of a tenant, or asked for.
func (w *lair) asked(tenant string, p *lairPort) bool {
	for k, list := range w.members {
		if list[p.guid] != nil && (w.parts[k].owner == tenant || p.owner == tenant) {
			return true
		}
	}
	return false
}

// holdsKey reports whether a port of a tenant holds a key of a partition: its own tables it sees.
func (w *lair) holdsKey(tenant, k string) bool {
	for _, p := range w.ports {
		for _, key := range p.port.ReadPKeys() {
			if p.owner == tenant && key.Base() == base(k) {
				return true
			}
		}
	}
	return false
}

// area is where an answer is from: members and the history tell of what was asked for.
type area int

const (
	ofFabric area = iota
	ofMembers
	ofHistory
	ofAudit // of the tenant's own requests
)

// secretsFrom is foreign, kept until something changes.
func (w *lair) secretsFrom(tenant string, from area) []string {
	key := fmt.Sprint(tenant, from)
	if w.secrets[key] == nil {
		w.secrets[key] = w.foreign(tenant, from)
	}
	return w.secrets[key]
}

// foreign lists what a tenant may not read in an answer.
func (w *lair) foreign(tenant string, from area) (list []string) {
	told := func(what string) bool { return from >= ofHistory && w.told[tenant][what] }
	for _, p := range w.ports {
		if p.owner == tenant {
			continue
		}
		cabled := slices.ContainsFunc(w.ports, func(own *lairPort) bool {
			return own.owner == tenant && own.port.Peer != nil && own.port.Peer.Node == p.port.Node
		})
		if !w.lent(tenant, p) {
			list = append(list, p.name, p.lid)
			// A switch has one GUID for both.
			if !told(p.guid) && !(from == ofMembers && w.asked(tenant, p)) && !cabled {
				list = append(list, p.guid)
			}
		}
		if p.node != p.guid && !cabled {
			list = append(list, p.node)
		}
	}
	for k, part := range w.parts {
		if !w.sees(tenant, k) && !told(k) {
			list = append(list, part.name)
			if !w.holdsKey(tenant, k) {
				list = append(list, k, "0x8"+k[3:], "\"0x"+strings.TrimLeft(k[2:], "0")+"\"")
			}
		}
	}
	for _, other := range []string{rubin, saphir, smaragd} {
		if other == tenant {
			continue
		}
		list = append(list, w.token[other])
		if !told(other) && !slices.ContainsFunc(slices.Collect(maps.Keys(w.parts)), func(k string) bool { return w.parts[k].owner == other && w.sees(tenant, k) }) {
			list = append(list, other)
		}
	}
	if tenant != smaragd {
		list = append(list, `"`+w.waiting+`"`)
	}
	for owner, label := range lairLabels { // of its partitions, and of the tenant
		if owner != tenant {
			list = append(list, label)
		}
	}
	return list
}

// lairLabels are the labels of the partitions of an owner, and of a tenant itself: words that are
// nowhere else.
var lairLabels = map[string]string{rubin: "karfunk", saphir: "azurith", smaragd: "berylla", resource.Provider: "quecksl"}

var (
	timesInText   = regexp.MustCompile(`\d{4}-\d\d-\d\dt\d\d:\d\d:\d\d[.0-9]*(z|[+-]\d\d:\d\d)|\d+\.\d+`)
	numbersInText = regexp.MustCompile(`\b\d{5}\b`)
)

// leaks lists what a tenant reads in an answer and may not know. What he said himself in the
// request he knows.
func (w *lair) leaks(tenant string, from area, request string, answer *httptest.ResponseRecorder) (list []string) {
	text := strings.ToLower(fmt.Sprint(answer.Header())) + strings.ToLower(answer.Body.String())
	numbers := map[string]bool{}
	for _, n := range numbersInText.FindAllString(timesInText.ReplaceAllString(text, ""), -1) {
		numbers[n] = true
	}
	if from == ofAudit {
		request += w.typed[tenant]
	}
	for _, secret := range w.secretsFrom(tenant, from) {
		in := strings.Contains(text, secret)
		switch {
		case len(secret) == 5 && secret[0] == '4':
			in = numbers[secret]
		case len(secret) == 18: // a GUID, which UFM has without 0x
			in = strings.Contains(text, secret[2:])
		}
		if in && !strings.Contains(request, strings.TrimPrefix(secret, "0x")) {
			list = append(list, secret)
		}
	}
	return list
}
