package ufm_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
)

// by makes a change as a tenant.
func (r *rig) by(tenant string, c resource.Change) {
	r.Helper()
	if _, err := r.service.Do(r.Context(), service.Request{Change: c, By: resource.Caller{Name: tenant + "-1", Tenant: tenant}, Seen: resource.Unseen}); err != nil {
		r.Fatalf("%s by %s: %v", c.Action(), tenant, err)
	}
}

// sharedRig is a rig in which red's partition 0x10 has a port of red and one of blue, to which both
// agreed, and waits for the provider's consent to a third; zinc has nothing.
func sharedRig(t *testing.T) *rig {
	r := newRig(t, ufm.Options{})
	r.change(resource.PutTenant{Tenant: resource.Tenant{Name: "zinc", Keys: resource.KeyRange{First: 0x3000, Last: 0x3fff}}})
	r.token("zinc", false)
	r.token("red", true)
	r.token("blue", true)
	for name, x := range map[string]resource.Token{"red-bound": {Tenant: "red", Keys: resource.KeyRange{First: 0x20, Last: 0x2f}}, "blue-bound": {Tenant: "blue", Keys: resource.KeyRange{First: 0x10, Last: 0x1f}}} {
		r.secrets[name], x.Sum = r.NewSecret()
		x.ID = name
		r.change(resource.PutToken{Token: x})
	}
	r.by("red", resource.PutPartition{Partition: resource.Partition{PKey: 0x10, Name: "red-net"}})
	full := func(g ib.PortGUID) []resource.Member { return []resource.Member{{Port: g, Membership: policy.Full}} }
	for _, g := range []ib.PortGUID{node01a, blueNode03, storage} {
		r.by("red", resource.SetMembers{PKey: 0x10, Members: full(g)})
	}
	r.by("blue", resource.Consent{PKey: 0x10, Port: blueNode03, Membership: policy.Full})
	return r
}

// TestWhoHasAPortInAPartitionSeesItElsewhere: UFM's calls show a partition to its owner and the
// provider. Who has one port in it is told neither that it is there nor who else is in it.
func TestWhoHasAPortInAPartitionSeesItElsewhere(t *testing.T) {
	r := sharedRig(t)
	for who, shown := range map[string]bool{"red": true, "red-reads": true, "provider": true, "blue": false, "blue-reads": false, "blue-bound": false, "red-bound": false, "zinc": false} {
		tenant, _, _ := strings.Cut(who, "-")
		owners := map[int]string{node01a: "red", blueNode03: "blue", storage: "provider"} // they see their ports in the default partition
		for _, x := range [][3]string{
			{"GET", "resources/pkeys"}, {"GET", "resources/pkeys?guids_data=true"}, {"GET", "resources/pkeys?qos_conf=true"}, {"GET", "resources/pkeys?pkey_name_prefix=red"},
			{"GET", "actions/get_all_pkeys?guids_data=true&qos_conf=true"}, {"POST", "actions/get_all_pkeys"},
			{"GET", "resources/pkeys/0x10?guids_data=true&qos_conf=true"},
		} {
			body := r.as(who, 200, x[0], "/ufmRestV3/"+x[1], "").body
			if got := strings.Contains(body, `"0x10"`) || strings.Contains(body, "red-net"); got != shown {
				t.Errorf("%s of %s: the partition is shown: %v, want %v: %s", x[1], who, got, shown, body)
			}
			for g, agreed := range map[int]bool{node01a: true, blueNode03: true, storage: false} {
				in := strings.Contains(body, fmt.Sprintf("%016x", g))
				if want := shown && agreed && strings.Contains(x[1], "guids_data"); in && !want && owners[g] != tenant && who != "provider" || want && !in {
					t.Errorf("%s of %s: port %x is shown: %v, want %v: %s", x[1], who, g, in, want, body)
				}
			}
		}
		r.as(who, map[bool]int{true: 200, false: 404}[shown], "GET", "/ufmRestV3/resources/pkeys/0x10", "")
	}
}

// TestNamesOfForeignHostsAreNone: a call with the name of a host of which the caller knows nothing is
// answered as one with a name that nobody has, and takes nothing out. A host that both owners agreed
// to has a name.
func TestNamesOfForeignHostsAreNone(t *testing.T) {
	r := sharedRig(t)
	for _, who := range []string{"red", "blue", "zinc", "red-bound"} {
		for _, k := range []string{"0x10", "0x2010", "0x3001", "0x20"} {
			none := r.ask("DELETE", "/ufmRestV3/resources/pkeys/"+k+"/hosts/nodexx", "Bearer "+r.secrets[who], "")
			for _, host := range []string{"storage-1", "node03", "node01", "node02"} {
				knows := map[string]string{"red": "node01 node02 node03", "red-bound": "node01 node02", "blue": "node02 node03"}[who]
				if strings.Contains(knows, host) {
					continue
				}
				got := r.ask("DELETE", "/ufmRestV3/resources/pkeys/"+k+"/hosts/"+host, "Bearer "+r.secrets[who], "")
				if got.status != none.status || strings.ReplaceAll(got.body, host, "") != strings.ReplaceAll(none.body, "nodexx", "") {
					t.Errorf("%s of %s as %s: %d %s; of a host that is none %d %s", host, k, who, got.status, got.body, none.status, none.body)
				}
				post := func(name string) reply {
					out := r.ask("POST", "/ufmRestV3/resources/pkeys/hosts", "Bearer "+r.secrets[who], fmt.Sprintf(`{"pkey":%q,"hosts_names":%q,"membership":"full"}`, k, name))
					out.body = strings.ReplaceAll(out.body, name, "")
					return out
				}
				if got, none := post(host), post("nodexx"); got.status != none.status || got.body != none.body {
					t.Errorf("%s into %s as %s: %d %s; of a host that is none %d %s", host, k, who, got.status, got.body, none.status, none.body)
				}
			}
		}
	}
	asked := func() (list []*resource.Member) {
		r.service.Read(func(s *resource.State) { list = s.Members(0x10) })
		return list
	}
	if list := asked(); len(list) != 3 {
		t.Errorf("a request was taken back by the name of a host: %+v", list)
	}
	r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/0x10/hosts/node03", "")
	if list := asked(); len(list) != 2 || list[0].Port != node01a || list[1].Port != storage {
		t.Errorf("a host of blue's that both agreed to was not removed by its name: %+v", list)
	}
}

// TestInventoryIsOnesOwn: every call of the inventory shows a tenant its own ports and devices, also
// while a port of another is in its partition.
func TestInventoryIsOnesOwn(t *testing.T) {
	r := sharedRig(t)
	all := map[string]string{"node01": "red", "node03": "blue", "storage-1": "provider", "leaf-1": "provider"}
	guids := map[int]string{node01a: "red", blueNode03: "blue", storage: "provider"}
	for _, who := range []string{"red", "red-reads", "red-bound", "blue", "blue-bound", "zinc"} {
		tenant, _, _ := strings.Cut(who, "-")
		for _, path := range []string{"resources/ports", "resources/systems", "resources/systems?ports=true", "resources/links", "resources/vports", "resources/pkeys/0x7fff?guids_data=true"} {
			body := r.as(who, 200, "GET", "/ufmRestV3/"+path, "").body
			for name, owner := range all {
				if strings.Contains(body, name) && owner != tenant {
					t.Errorf("%s of %s tells of %s: %s", path, who, name, body)
				}
			}
			for g, owner := range guids {
				if strings.Contains(body, fmt.Sprintf("%016x", g)) && owner != tenant {
					t.Errorf("%s of %s tells of %x: %s", path, who, g, body)
				}
			}
			if tenant == "red" && strings.HasPrefix(path, "resources/ports") && !strings.Contains(body, "node01") {
				t.Errorf("%s of %s: %s", path, who, body)
			}
			if strings.Contains(body, "peer_") {
				t.Errorf("%s of %s tells of the other ends of cables: %s", path, who, body)
			}
		}
		for g, owner := range guids {
			want := map[bool]int{true: 200, false: 404}[owner == tenant]
			r.as(who, want, "GET", fmt.Sprintf("/ufmRestV3/resources/ports/%016x_1", g), "")
			r.as(who, want, "GET", fmt.Sprintf("/ufmRestV3/resources/systems/%016x", g-1), "")
		}
	}
}
