package files

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/sa/server"
	"github.com/ibwarden/ibwarden/internal/store"
)

const testKey ib.SMKey = 77

// multicast is the i-th address of groups.
func multicast(i int) ib.GID {
	g := ib.MakeGID(0xFF12_401B_FFFF_0000, ib.PortGUID(i+1))
	return g
}

// hostsKept is what a manager keeps of so many hosts with IPoIB: LIDs, keys, the groups
// that Linux joins, a service with a lease, and a subscription each.
func hostsKept(t testing.TB, hosts int) All {
	t.Helper()
	a := All{
		Assigned: desired.Assigned{
			LIDs: map[ib.PortGUID]ib.LID{}, PKeys: map[string]ib.PKeyBase{"red": 0x10}, Managed: true, Aliases: true,
			Forgets: map[observed.Place]observed.Element{{Node: 3, Port: 4}: observed.ElementHOQLife},
			Fenced:  map[ib.PortGUID]bool{5: true, 6: true}, Fences: map[observed.Place]string{{Node: 7, Port: 1}: "cabled elsewhere"},
			Names: map[string]bool{"host-1": true},
		},
		Registered: Registered{SAKey: testKey, Manager: 0x42}, Secret: "sum",
	}
	r := &a.Registered
	r.Aliases = map[ib.PortGUID][]ib.PortGUID{3: {0, 9}}
	all := group.Group{MGID: multicast(0), MLID: 0xC000, Partition: 0x7FFF, Settings: group.Settings{MTU: ib.MTU2048, Rate: 3}, Fixed: true}
	var book mkey.Book
	for i := range hosts {
		port, lid := ib.PortGUID(0x1000_0000_0000+i), ib.LID(i+1)
		gid := ib.MakeGID(ib.DefaultGIDPrefix, port)
		a.Assigned.LIDs[port] = lid
		e, err := book.Add(mkey.ID{Node: ib.NodeGUID(port), Port: port}, observed.Place{Node: ib.NodeGUID(i/18 + 1), Port: ib.PortNum(i%18 + 1)})
		if err != nil {
			t.Fatal(err)
		}
		book.Confirm(e, e.Next)
		m := group.Member{Port: port, GID: gid, State: sa.JoinFull}
		all.Members = append(all.Members, m)
		r.Groups.Groups = append(r.Groups.Groups, group.Group{
			MGID: multicast(i + 1), MLID: ib.LID(0xC001 + i), Partition: 0x7FFF,
			Settings: group.Settings{MTU: ib.MTU2048, Rate: 3, QKey: 0xb1b}, Members: []group.Member{m},
		})
		r.Services = append(r.Services, server.Service{Port: port, Left: time.Hour, Record: sa.ServiceRecord{
			ServiceID: uint64(i + 1), ServiceGID: gid, ServicePKey: 0xFFFF, ServiceLease: 3600,
		}})
		if i%2 == 0 {
			r.Services[i].Left, r.Services[i].Record.ServiceLease = 0, sa.ServiceLeaseForever
		}
		r.Subscriptions = append(r.Subscriptions, server.Subscription{
			Port: port, Enum: uint16(i), Trusted: i%3 == 0, Address: mad.Address{LID: lid, QP: 1, PKey: 0xFFFF},
		})
	}
	r.Groups.Groups = append([]group.Group{all}, r.Groups.Groups...)
	r.Groups.Retired, r.Groups.Serial = []group.Retired{{MLID: 0xFFF0, Partition: 0x10}}, 9
	a.Cables = []byte(strings.Repeat("Switch 36 \"S-1\" # cables\n", 180*hosts))
	var err error
	if a.Book, err = json.Marshal(&book); err != nil {
		t.Fatal(err)
	}
	return a
}

// changes are what a store lacks, entered.
func changes(t testing.TB, o *Objects, a *All, now time.Time) []store.Object {
	t.Helper()
	list, err := o.Changes(a, now)
	if err != nil {
		t.Fatal(err)
	}
	o.Enter(list)
	return list
}

func sizeOf(list []store.Object) (n int) {
	for _, x := range list {
		n += len(x.Value)
	}
	return n
}

// What a master keeps in the store is what its standby has: all of it, in the same words
// whoever writes it. A change writes what it is about, and nothing changed writes nothing.
func TestObjectsRoundTrip(t *testing.T) {
	now := time.Unix(1_800_000_001, 5)
	want := hostsKept(t, 40)
	var o, standby Objects
	if _, some, err := standby.All(testKey, now); some || err != nil {
		t.Fatalf("an empty store: %v, %v", some, err)
	}
	standby.Enter(changes(t, &o, &want, now))
	check := func() {
		t.Helper()
		got, some, err := standby.All(testKey, now)
		if err != nil || !some {
			t.Fatal(some, err)
		}
		less := func(a, b server.Service) bool { return a.Port < b.Port }
		first := func(a, b group.Group) bool { return a.MLID < b.MLID }
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(server.Service{}, server.Subscription{}, sa.ServiceRecord{}, sa.InformInfo{}), cmpopts.SortSlices(less), cmpopts.SortSlices(first),
			cmpopts.SortSlices(func(a, b group.Member) bool { return a.Port < b.Port }),
			cmpopts.IgnoreFields(server.Service{}, "Left"), cmpopts.IgnoreFields(All{}, "Book", "Cables")); diff != "" {
			t.Fatalf("(-kept +found):\n%s", diff)
		}
		if !bytes.Equal(got.Cables, want.Cables) { // cmp takes seconds for so many
			t.Fatal("the list of cables is another")
		}
		var was, is mkey.Book
		if err := is.UnmarshalJSON(got.Book); err != nil {
			t.Fatal(err)
		}
		if err := was.UnmarshalJSON(want.Book); err != nil || cmp.Diff(books(was.Entries()), books(is.Entries())) != "" {
			t.Fatalf("the key book is another: %v", err)
		}
		for _, x := range got.Registered.Services {
			if ends := x.Record.ServiceLease != sa.ServiceLeaseForever; ends && (x.Left < time.Hour || x.Left > time.Hour+leaseStep) {
				t.Fatalf("%v are left of a lease of an hour", x.Left)
			}
		}
	}
	check()
	if list := changes(t, &o, &want, now.Add(300*time.Millisecond)); len(list) > 40 { // leases at the edge of a step
		t.Errorf("nothing changed: %d objects", len(list))
	}
	if list := changes(t, &standby, &want, now); len(list) != 0 {
		t.Errorf("the standby writes %d objects that are there", len(list))
	}
	if len(want.Cables) < cablesChunk {
		t.Fatal("the test is wrong: the list of cables is short")
	}
	g := &want.Registered.Groups.Groups[0]
	g.Members[3].State = sa.JoinFull | sa.JoinNon
	standby.Enter(changes(t, &o, &want, now))
	check()
	g.Members[3].State = sa.JoinFull
	list := changes(t, &o, &want, now)
	standby.Enter(list)
	if len(list) != 2 || sizeOf(list) > 8<<10 {
		t.Errorf("a member changed: %d objects, %d bytes", len(list), sizeOf(list))
	}
	want.Cables = want.Cables[:100]
	standby.Enter(changes(t, &o, &want, now))
	check()
	if r, _, err := standby.All(testKey+1, now); err != nil || len(r.Registered.Subscriptions) != 26 {
		t.Errorf("with another SA_Key %d subscriptions, %v: want those that are not trusted", len(r.Registered.Subscriptions), err)
	}
	if r, _, _ := standby.All(testKey, now.Add(2*time.Hour)); len(r.Registered.Services) != 20 {
		t.Errorf("two hours later %d services, want 20 whose lease does not end", len(r.Registered.Services))
	}
}

func books(list []*mkey.Entry) (out []string) {
	for _, e := range list {
		out = append(out, fmt.Sprint(e.ID, e.Current, e.Next, e.Places))
	}
	return out
}

// A value that somebody damaged, or wrote on purpose, is refused by name; nothing of what
// stands beside it is taken.
func TestDamagedObjects(t *testing.T) {
	now := time.Now()
	a := hostsKept(t, 3)
	var list []store.Object
	find := func(text string) string {
		for _, x := range list {
			if strings.Contains(string(x.Value), text) {
				return x.Key
			}
		}
		t.Fatalf("no object has %s", text)
		return ""
	}
	for _, c := range []struct{ was, is, fault string }{
		{`"version":1,"manager"`, `"version":2,"manager"`, "manager/head: version 2"},
		{`"salt":"`, `"salt":"x`, "salt"},
		{`"lids":{`, `"lids":[`, partPrefix},
		{`"lids":{`, `"walls":{},"lids":{`, "a newer ibwarden has written it"},
		{`"mlid":49152`, `"mlid":49152000`, partPrefix},
		{`"0x0000100000000001":2`, `"0x0000100000000001":49152`, "want a unicast LID"},
		{`"pkeys":{"red":"0x0010"}`, `"pkeys":{"red":"0x0000"}`, "want 0x0001 to 0x7fff"},
		{`"fences":{"0x0000000000000007:1"`, `"fences":{"x:1"`, "fenced switch port"},
		{`"mgid":"ff12:401b::1"`, `"mgid":"x"`, "there is no such group"},
		{`"services":[{"port":"0x`, `"services":[{"port":"0y`, "services["},
		{`"lid":2,`, `"lid":0,`, "subscriptions["},
		{`"retired_mlids":{"0xfff0"`, `"retired_mlids":{"0x0001"`, "retired_mlids"},
	} {
		var o Objects
		list = changes(t, &o, &a, now)
		was := c.was
		if strings.HasPrefix(was, `"mgid"`) {
			was = fmt.Sprintf(`"mgid":"%s"`, a.Registered.Groups.Groups[1].MGID)
		}
		key := find(was)
		for _, x := range list {
			if x.Key == key {
				o.Enter([]store.Object{{Key: key, Value: []byte(strings.Replace(string(x.Value), was, c.is, 1))}})
			}
		}
		if got, some, err := o.All(testKey, now); err == nil || !strings.Contains(err.Error(), c.fault) {
			t.Errorf("%s instead of %s: %v, %v, %d LIDs: want an error with %q", c.is, was, err, some, len(got.Assigned.LIDs), c.fault)
		}
		// Who writes next puts it right.
		changes(t, &o, &a, now)
		if _, _, err := o.All(testKey, now); err != nil && c.fault != "manager/head: version 2" {
			t.Errorf("after the next change: %v", err)
		}
	}
	var o Objects
	changes(t, &o, &a, now)
	o.Enter([]store.Object{{Key: Prefix + "what", Value: []byte("{}")}})
	if _, _, err := o.All(testKey, now); err == nil || !strings.Contains(err.Error(), "manager/what") {
		t.Errorf("an object that nobody knows: %v", err)
	}
	o.size = ObjectsMax + 1
	delete(o.bad, Prefix+"what")
	if _, _, err := o.All(testKey, now); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("too much: %v", err)
	}
}

// BenchmarkObjects is what it takes to keep 3,456 hosts, to keep one change of them, and to
// take all of it over.
func BenchmarkObjects(b *testing.B) {
	a := hostsKept(b, 3456)
	now := time.Unix(1_800_000_000, 0)
	var o Objects
	first := changes(b, &o, &a, now)
	b.Run("one change", func(b *testing.B) {
		for i := range b.N {
			a.Registered.Groups.Groups[0].Members[i%3456].Proxy = !a.Registered.Groups.Groups[0].Members[i%3456].Proxy
			list := changes(b, &o, &a, now)
			b.ReportMetric(float64(sizeOf(list)), "bytes")
		}
	})
	b.Run("all", func(b *testing.B) {
		for range b.N {
			var o Objects
			o.Enter(first)
			if _, _, err := o.All(testKey, now); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(sizeOf(first)), "bytes")
		b.ReportMetric(float64(len(first)), "objects")
	})
	b.Run("all that was read before", func(b *testing.B) {
		for range b.N {
			if _, _, err := o.All(testKey, now); err != nil {
				b.Fatal(err)
			}
		}
	})
}
