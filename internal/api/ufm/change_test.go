package ufm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/store"
)

const addNode01 = `{"pkey":5,"guids":["0002c90300000011"]}`

// TestProof: what the answer to a change says for each thing that can become of it.
func TestProof(t *testing.T) {
	short := ufm.Options{Wait: time.Second / 2} // the change is stored by then, however busy the machine is
	shortStrict := ufm.Options{Wait: short.Wait, Strict: true}
	strict := ufm.Options{Strict: true}
	for _, c := range []struct {
		mode    string
		options ufm.Options
		status  int
		state   string
	}{
		{"proved", ufm.Options{}, 200, "proved"},
		{"proved", strict, 200, "proved"},
		{"pending", short, 200, "pending"},
		{"pending", shortStrict, 503, "pending"},
		{"pending", ufm.Options{Wait: -1}, 200, "pending"},
		{"failed", ufm.Options{}, 200, "failed"},
		{"failed", strict, 503, "failed"},
		{"refused", ufm.Options{}, 409, "refused"},
		{"refused", strict, 409, "refused"},
	} {
		r := newRig(t, c.options)
		r.manager.work.Wait()
		r.mode(c.mode)
		out := r.as("red", c.status, "POST", "/ufmRestV3/resources/pkeys", addNode01)
		if got := out.header.Get("Ibwarden-State"); got != c.state {
			t.Errorf("%s, %+v: state %q: want %q", c.mode, c.options, got, c.state)
		}
		if c.mode == "refused" && strings.Contains(out.body, "no room") {
			t.Errorf("%s: a tenant reads a reason that may name others", out.body)
		}
		r.manager.work.Wait()
	}
}

// TestRefusedIsUndone: what the fabric cannot take is not there afterwards.
func TestRefusedIsUndone(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.manager.work.Wait()
	r.mode("refused")
	out := r.as("red", 409, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	r.close() // waits for the undoing
	if r.exists(5) {
		t.Errorf("partition 5 is there after %s", out.body)
	}
	r = newRig(t, ufm.Options{})
	r.manager.work.Wait()
	r.mode("refused")
	if out := r.as("provider", 409, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":"0x4000"}`); !strings.Contains(out.body, "no room") {
		t.Errorf("%s: want the reason", out.body)
	}
}

// TestRepeatedChangeIsNotBlamed: a call that changes nothing is not told what became of
// somebody else's change.
func TestRepeatedChangeIsNotBlamed(t *testing.T) {
	r := newRig(t, ufm.Options{Wait: time.Second, Strict: true})
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	r.manager.work.Wait()
	r.mode("failed")
	r.as("blue", 503, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":"0x2005"}`)
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", addNode01)
}

// TestClientThatGoesAway: the change is made whole even if nobody waits for the answer.
func TestClientThatGoesAway(t *testing.T) {
	r := newRig(t, ufm.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := newRequest(ctx, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	q.Header.Set("Authorization", "Basic "+r.secrets["red"])
	if out := r.send(q); out.status != 200 || len(r.members(5)) != 1 {
		t.Errorf("%d %s, members %x", out.status, out.body, r.members(5))
	}
}

// TestStoreIsGone: a change that cannot be stored is not made, and only the provider
// reads what is wrong.
func TestStoreIsGone(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.manager.work.Wait()
	if err := r.store.Close(); err != nil {
		t.Fatal(err)
	}
	if out := r.as("red", 503, "POST", "/ufmRestV3/resources/pkeys", addNode01); strings.Contains(out.body, "store") || r.exists(5) {
		t.Errorf("red reads %s", out.body)
	}
	if out := r.as("provider", 503, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":"0x4000"}`); !strings.Contains(out.body, "closed") {
		t.Errorf("the provider reads %s", out.body)
	}
	r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys", "")
}

// TestUnreadFabric: before the first sweep nobody is told that a list is empty.
func TestUnreadFabric(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.manager.unread.Store(true)
	for _, path := range []string{"resources/ports", "resources/systems", "resources/links", "resources/vports", "app/smconf", "resources/pkeys?guids_data=true", "resources/pkeys/0x7fff?guids_data=true"} {
		r.as("red", 503, "GET", "/ufmRestV3/"+path, "")
	}
	r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys", "")
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys/5?guids_data=true", "")
	r.manager.unread.Store(false)
	r.as("red", 200, "GET", "/ufmRestV3/resources/ports", "")
}

// TestUnseenGUIDs: GUIDs that nobody has seen are taken.
func TestUnseenGUIDs(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.as("provider", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":"0x4000","guids":["0200000000000077"]}`)
	r.change(resource.AssignPool{Tenant: "red", First: 0x0200000000001000, Last: 0x0200000000001fff})
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["0200000000000001","0200000000001234"]}`)
	r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["0200000000002000"]}`)
}

// TestApproval: where a removal waits for a second person, the client is told that it was
// not done, and its repetitions ask for no second approval.
func TestApproval(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.change(resource.PutTenant{Tenant: resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 0x0fff}, ApproveRemovals: true}})
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	approvals := func() (list []resource.Approval) {
		r.service.Read(func(s *resource.State) {
			for _, a := range s.Approvals() {
				list = append(list, *a)
			}
		})
		return list
	}
	for range 3 {
		r.as("red", 409, "POST", "/ufmRestV3/actions/remove_guids_from_pkey", addNode01)
		r.as("red", 409, "DELETE", "/ufmRestV3/resources/pkeys/5", "")
	}
	if got := approvals(); len(got) != 2 || len(r.members(5)) != 1 {
		t.Fatalf("%d approvals wait, and the members are %x", len(got), r.members(5))
	}
	for _, a := range approvals() {
		if a.Action == "amend partition" {
			r.change(resource.Approve{ID: a.ID})
		}
	}
	if r.exists(5) {
		t.Error("the removal was approved and not done")
	}
	r.as("red", 200, "POST", "/ufmRestV3/actions/remove_guids_from_pkey", addNode01)
}

// TestBoundTokens: a token for some partitions sees and changes no other, and makes no
// tokens; a provider's sees no inventory of tenants.
func TestBoundTokens(t *testing.T) {
	r := newRig(t, ufm.Options{})
	bind := func(name, tenant string, first, last ib.PKeyBase) {
		secret, sum := r.NewSecret()
		r.secrets[name] = secret
		r.change(resource.PutToken{Token: resource.Token{ID: name, Tenant: tenant, Sum: sum, Keys: resource.KeyRange{First: first, Last: last}}})
	}
	bind("job", "red", 0x10, 0x1f)
	bind("ops", "provider", 0x4000, 0x40ff)
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	r.as("job", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":"0x10","guids":["0002c90300000011"]}`)
	r.as("ops", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":"0x4001","guids":["0002c90300000051"]}`)
	for who, want := range map[string]string{"job": `["0x10","0x7fff"]`, "ops": `["0x4001","0x7fff"]`, "red": `["0x5","0x10","0x7fff"]`} {
		if out := r.as(who, 200, "GET", "/ufmRestV3/resources/pkeys", ""); out.body != want {
			t.Errorf("%s sees %s: want %s", who, out.body, want)
		}
	}
	for _, who := range []string{"job", "ops"} {
		r.as(who, 400, "POST", "/ufmRestV3/resources/pkeys", addNode01)
		r.as(who, 400, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":"0x20"}`)
		r.as(who, 404, "GET", "/ufmRestV3/resources/pkeys/5", "")
		r.as(who, 404, "DELETE", "/ufmRestV3/resources/pkeys/5", "")
		r.as(who, 400, "POST", "/ufmRestV3/app/tokens", "")
		if out := r.as(who, 200, "GET", "/ufmRestV3/app/tokens", ""); out.body != "[]" {
			t.Errorf("%s sees the tokens %s", who, out.body)
		}
	}
	if out := r.as("ops", 200, "GET", "/ufmRestV3/resources/ports", ""); strings.Count(out.body, `"name"`) != 1 || !strings.Contains(out.body, fmt.Sprintf("%016x", storage)) {
		t.Errorf("ops sees the ports %s", out.body)
	}
	if len(r.members(5)) != 1 {
		t.Error("a token bound to other partitions changed 0x0005")
	}
}

// TestKeysOfTheSubnet: smconf says whether keys are known to everybody, and no key.
func TestKeysOfTheSubnet(t *testing.T) {
	keys := func(r *rig) (got map[string]any) {
		if err := json.Unmarshal([]byte(r.as("red", 200, "GET", "/ufmRestV3/app/smconf", "").body), &got); err != nil {
			t.Fatal(err)
		}
		return got
	}
	r := newRig(t, ufm.Options{Keys: ufm.Keys{DefaultSMKey: true, DefaultSAKey: true}})
	if got := keys(r); got["sm_key"] != "0x0000000000000001" || got["sa_key"] != "0x0000000000000001" || got["m_key_per_port"] != true {
		t.Errorf("%v", got)
	}
	r = newRig(t, ufm.Options{})
	for _, change := range []func(*observed.Fabric){
		func(f *observed.Fabric) { f.Nodes[1].Ports[1].Info.MKey = 0 },
		func(f *observed.Fabric) { f.Nodes[1].Ports[1].InfoRead = false },
		func(f *observed.Fabric) { f.Nodes = nil },
	} {
		f := testFabric()
		change(f)
		r.manager.fabric.Store(f)
		r.clock.Add(2)
		if got := keys(r); got["m_key"] != "0x0000000000000000" || got["m_key_per_port"] != false || got["sm_key"] != "0xffffffffffffffff" {
			t.Errorf("%v", got)
		}
	}
	f := testFabric()
	f.Nodes[1].Ports[1].Info.MKey = f.Nodes[2].Ports[1].Info.MKey
	r.manager.fabric.Store(f)
	r.clock.Add(2)
	got := keys(r)
	if got["m_key"] != "0xffffffffffffffff" || got["m_key_per_port"] != false {
		t.Errorf("one M_Key at two ports: %v", got)
	}
	for _, n := range f.Nodes {
		if text := fmt.Sprintf("%016x", uint64(n.Ports[len(n.Ports)-1].Info.MKey)); strings.Contains(fmt.Sprint(got), text) && n.Switch == nil {
			t.Errorf("smconf shows the M_Key %s", text)
		}
	}
}

// TestHostsThatLie: a host chooses its own name. It gets into no partition of another
// tenant by it, not at all if another has the same description, and it stays in none by
// changing it.
func TestHostsThatLie(t *testing.T) {
	r := newRig(t, ufm.Options{})
	hosts := func(who string, status int, names string) {
		r.as(who, status, "POST", "/ufmRestV3/resources/pkeys/hosts", `{"pkey":"0x5","hosts_names":"`+names+`"}`)
	}
	hosts("red", 200, "node02")
	if got := r.members(5); !slices.Equal(got, []ib.PortGUID{node02}) {
		t.Errorf("members %x", got)
	}
	// node01's second adapter now has the very description of node02's.
	f := testFabric()
	for _, n := range f.Nodes {
		if n.Description == "node01 mlx5_1" {
			n.Description = "node02 mlx5_0"
		}
	}
	r.manager.fabric.Store(f)
	r.clock.Add(2)
	hosts("red", 400, "node02")
	hosts("red", 200, "node01")
	if got := r.members(5); !slices.Equal(got, []ib.PortGUID{node01a, node02}) {
		t.Errorf("members %x", got)
	}
	// node02 calls itself something else and is removed all the same.
	for _, n := range f.Nodes {
		if n.Description == "node02 mlx5_0" {
			n.Description = "somebody"
		}
	}
	r.clock.Add(2)
	r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/5/hosts/node02", "")
	if got := r.members(5); !slices.Equal(got, []ib.PortGUID{node01a}) {
		t.Errorf("members %x", got)
	}
	// One that was added by its GUID goes by the name that it has.
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", fmt.Sprintf(`{"pkey":5,"guids":["%016x"]}`, node02))
	r.as("red", 404, "DELETE", "/ufmRestV3/resources/pkeys/5/hosts/node77", "")
	r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/5/hosts/"+url.PathEscape("somebody"), "")
	// Who is heard of removes those who are there, and says whom it does not know.
	r.as("red", 404, "DELETE", "/ufmRestV3/resources/pkeys/5/hosts/node[01,77]", "")
	if r.exists(5) {
		t.Errorf("members %x", r.members(5))
	}
	// Nor can it be removed in the place of another, whose name it has by now.
	r.manager.fabric.Store(testFabric())
	r.clock.Add(2)
	hosts("red", 200, "node[01-02]")
	f = testFabric()
	for _, n := range f.Nodes {
		if n.Description == "node02 mlx5_0" {
			n.Description = "node01 mlx5_9"
		}
	}
	r.manager.fabric.Store(f)
	r.clock.Add(2)
	r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/5/hosts/node01", "")
	if got := r.members(5); !slices.Equal(got, []ib.PortGUID{node02}) {
		t.Errorf("members %x", got)
	}
	r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/5", "")
	r.manager.fabric.Store(func() *observed.Fabric { f := testFabric(); f.Nodes[1].Contested = true; return f }())
	r.clock.Add(2)
	hosts("red", 200, "node01") // the adapter that nobody else claims to be
	if got := r.members(5); !slices.Equal(got, []ib.PortGUID{node01b}) {
		t.Errorf("members %x", got)
	}
}

// TestNodeLists reads names of hosts as Slurm writes them.
func TestNodeLists(t *testing.T) {
	r := newRig(t, ufm.Options{})
	for list, want := range map[string]int{
		"node01": 200, "node01,node02": 200, " node01 , node02,": 200, "node[01-02]": 200, "node[01,02]": 200, "node0[1-2]": 200, "node[01-01],node02": 200,
		"node01 mlx5_0": 200, "n[o]de01": 400, "node[01": 400, "node01]": 400, "node[2-1]": 400, "node[]": 400, "[": 400, "node[[01]]": 400, "": 400, ",": 400,
		"node[0-99999]": 400, "node[1-100][1-101]": 400, "node[4294967296]": 400, strings.Repeat("x", 300): 400, "node[-1]": 400, "node[1-]": 400, "node03": 400,
	} {
		r.as("red", want, "POST", "/ufmRestV3/resources/pkeys/hosts", `{"pkey":"0x5","hosts_names":"`+list+`"}`)
	}
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/hosts", `{"pkey":"0x5","hosts_names":["node01","node02"]}`)
}

// TestJobs: a job runs until its change is proved, and each tenant has its own.
func TestJobs(t *testing.T) {
	for mode, want := range map[string]string{"pending": "Running", "proved": "Completed", "failed": "Failed", "refused": "Failed"} {
		var options ufm.Options
		if mode == "pending" {
			options.Wait = time.Second / 2
		}
		r := newRig(t, options)
		r.manager.work.Wait()
		r.mode(mode)
		var job struct{ ID, Status string }
		out := r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/hosts", `{"pkey":"0x5","hosts_names":"node01"}`)
		if err := json.Unmarshal([]byte(out.body), &job); err != nil || job.ID == "" || job.Status != want {
			t.Fatalf("%v: %s: want %s, since a client may ask no more", err, out.body, want)
		}
		if got := out.header.Get("Ibwarden-State"); got != mode {
			t.Errorf("%s: state %q", mode, got)
		}
		r.manager.work.Wait()
		if out := r.as("red", 200, "GET", "/ufmRestV3/jobs/"+job.ID, ""); !strings.Contains(out.body, `"status":"`+want+`"`) || !strings.Contains(out.body, `"Status":"`+want+`"`) {
			t.Errorf("%s: %s: want %s", mode, out.body, want)
		}
		r.as("blue", 404, "GET", "/ufmRestV3/jobs/"+job.ID, "")
		r.as("blue", 404, "DELETE", "/ufmRestV3/jobs/"+job.ID, "")
	}
}

// TestQuotaAndSpeed: what a tenant has used up is refused, with the status of that.
func TestQuotaAndSpeed(t *testing.T) {
	r := newRig(t, ufm.Options{})
	red := resource.Tenant{Name: "red", Keys: resource.KeyRange{First: 1, Last: 0x0fff}, Quota: resource.Quota{Members: 1}}
	r.change(resource.PutTenant{Tenant: red})
	r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["0002c90300000011","0002c90300000021"]}`)
	if r.exists(5) {
		t.Error("half of a call was done")
	}
	r.clock.Add(60) // what was refused counts too
	red.Quota = resource.Quota{ChangesPerMinute: 2}
	r.change(resource.PutTenant{Tenant: red})
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":5}`)
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":6}`)
	if out := r.as("red", 429, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":7}`); out.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// TestAudit: what a call did and what it was refused is in the audit log.
func TestAudit(t *testing.T) {
	r := newRig(t, ufm.Options{})
	good := r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", addNode01)
	bad := r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":"0x2010","guids":["0002c90300000011"]}`)
	decisions := map[string]store.Decision{}
	for e, err := range r.store.Audit(t.Context(), store.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		decisions[e.Request] = e.Decision
	}
	if decisions[good.header.Get("X-Request-Id")] != store.Accepted || decisions[bad.header.Get("X-Request-Id")] != store.Refused {
		t.Errorf("%v", decisions)
	}
}

// act is one call of a writer on one GUID.
type act struct {
	add        bool
	start, end uint64 // the last revision before it was sent and after it was answered
}

// TestWritersAtOnce has 8 clients add and remove the same GUIDs of one partition, with
// the calls of different clients, and the partition vanish in between whenever it is
// empty. Afterwards each GUID is a member, or not, as some order of the calls explains;
// a GUID that one client alone added is there; and a partition is there exactly if it
// has members.
func TestWritersAtOnce(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := newRig(t, ufm.Options{Wait: -1})
	const writers, calls = 8, 25
	guids := []ib.PortGUID{node01a, node01b, node02, virtual}
	var mu sync.Mutex
	acts := map[ib.PortGUID][]act{}
	last := func() (n uint64) {
		r.service.Read(func(s *resource.State) { n = s.Last() })
		return n
	}
	for i := range writers {
		r.assign("red", ib.PortGUID(virtual+0x100+i))
	}
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			for range calls {
				g, add := guids[rng.IntN(len(guids))], rng.IntN(2) == 0
				a := act{add: add, start: last()}
				body := fmt.Sprintf(`{"pkey":"0x5","guids":["%016x"]}`, uint64(g))
				var out reply
				switch {
				case add:
					out = r.ask("POST", "/ufmRestV3/resources/pkeys/", "Basic "+r.secrets["red"], body)
				case rng.IntN(2) == 0:
					out = r.ask("POST", "/ufmRestV3/actions/remove_guids_from_pkey", "Basic "+r.secrets["red"], body)
				default:
					out = r.ask("DELETE", fmt.Sprintf("/ufmRestV3/resources/pkeys/5/guids/%016x", uint64(g)), "Basic "+r.secrets["red"], "")
				}
				if out.status != 200 && (add || out.status != 404) {
					t.Errorf("%s: %d %s", body, out.status, out.body)
				}
				a.end = last()
				mu.Lock()
				acts[g] = append(acts[g], a)
				mu.Unlock()
			}
			own := fmt.Sprintf(`{"pkey":"0x6","guids":["%016x"]}`, virtual+0x100+i)
			r.ask("POST", "/ufmRestV3/resources/pkeys", "Basic "+r.secrets["red"], own)
		})
	}
	wg.Wait()
	members := r.members(5)
	for _, g := range guids {
		is := slices.Contains(members, g)
		explained := !is && len(acts[g]) == 0
		for _, x := range acts[g] {
			// x can have been the last if no call of the other kind began after it ended.
			explained = explained || x.add == is && !slices.ContainsFunc(acts[g], func(y act) bool { return y.add != is && y.start > x.end })
		}
		if !explained {
			t.Errorf("%x is a member: %v, which no order of %+v explains", g, is, acts[g])
		}
	}
	if r.exists(5) != (len(members) > 0) {
		t.Errorf("the partition is there: %v, and has the members %x", r.exists(5), members)
	}
	if got := r.members(6); len(got) != writers {
		t.Errorf("of %d GUIDs that one client each added, %x are members", writers, got)
	}
	// The history leads to the same members, revision by revision.
	replayed := map[string]bool{}
	records, err := r.service.History(t.Context(), boss, store.Range{})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range records {
		for _, e := range rec.Edits {
			if strings.HasPrefix(e.Key, "member/0x0005/") {
				if (len(e.Before) > 0) != replayed[e.Key] {
					t.Errorf("revision %d: %s was there: %v, and its diff says %v", rec.Number, e.Key, replayed[e.Key], len(e.Before) > 0)
				}
				replayed[e.Key] = len(e.After) > 0
			}
		}
	}
	for _, g := range guids {
		if replayed[resource.MemberKey(5, g)] != slices.Contains(members, g) {
			t.Errorf("%x: the history and the state differ", g)
		}
	}
}
