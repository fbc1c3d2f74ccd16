package controller

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

func scenarios() []scenario {
	return append(append(ofTenants(), ofPartitions()...), ofBindings()...)
}

func ofTenants() []scenario {
	type T = v1alpha1.IBTenant
	fresh := func(t *T) { t.Status, t.Finalizers = v1alpha1.IBTenantStatus{}, nil }
	gone := given{"/tenants/red": "", "/ports": `{"items":[]}`}
	pool := v1alpha1.Pool{First: "0x0000000000001000", Last: "0x0000000000001fff"}
	other := `{"first":"0x0000000000002000","last":"0x0000000000002fff","owner":"red"}`
	return []scenario{
		{name: "tenant: new", object: redTenant(fresh), service: gone},
		{name: "tenant: new, refused", object: redTenant(fresh), service: given{"/tenants/red": "", "PUT /tenants/red": "409"}},
		{name: "tenant: new, somebody was first", object: redTenant(fresh), service: given{"/tenants/red": "", "PUT /tenants/red": "412"}},
		{name: "tenant: there already", object: redTenant(fresh)},
		{name: "tenant: adopted", object: redTenant(fresh, func(t *T) { t.Spec.Adopt = true }), others: []kube.Object{secret}},
		{name: "tenant: not adopted, it has more ports", object: redTenant(fresh, func(t *T) { t.Spec.Adopt, t.Spec.Ports = true, nil })},
		{name: "tenant: not adopted, it has another pool", object: redTenant(fresh, func(t *T) { t.Spec.Adopt = true }), service: given{"/pools": `{"items":[` + other + `]}`}},
		{name: "tenant: settled", object: redTenant(), others: []kube.Object{secret}},
		{name: "tenant: changed through the API", object: redTenant(), others: []kube.Object{secret},
			service: given{"/tenants/red": `{"item":{"name":"red","keys":{"first":"0x0100","last":"0x02ff"},"approve_removals":true}}`}},
		{name: "tenant: changed here", object: redTenant(func(t *T) { t.Generation, t.Spec.KnownPortsOnly = 2, true }), others: []kube.Object{secret}},
		{name: "tenant: its token is not taken", object: redTenant(), others: []kube.Object{secret},
			service: given{"/tokens": `{"items":[{"id":"tok-1","note":"kubernetes uid-red"},{"id":"tok-2","note":"of somebody"}]}`, "Bearer ibw_old /tenants/red": "401"}},
		{name: "tenant: no token", object: redTenant(), service: given{"/tokens": `{"items":[{"id":"tok-1","note":"kubernetes uid-red"},{"id":"tok-2","note":"of somebody"}]}`}},
		{name: "tenant: a port too many, one missing, one of a pool", object: redTenant(func(t *T) { t.Spec.Ports[0].GUID = guid12; t.Spec.Pools = []v1alpha1.Pool{pool} }), others: []kube.Object{secret},
			service: given{"/ports": `{"items":[` + port11 + `,{"guid":"0x0000000000001005","owner":"red"}]}`, "/pools": `{"items":[{"first":"0x0000000000001000","last":"0x0000000000001fff","owner":"red"}]}`}},
		{name: "tenant: a port bound to another place", object: redTenant(func(t *T) { t.Spec.Ports[0].Bound = &v1alpha1.Place{Switch: "0x0000000000000051", Port: 7} }), others: []kube.Object{secret},
			service: given{"/ports": `{"items":[{"guid":"` + guid11 + `","owner":"red","bound":{"switch":"0x0000000000000051","port":8}}]}`}},
		{name: "tenant: a port bound as it should be", object: redTenant(func(t *T) { t.Spec.Ports[0].Bound = &v1alpha1.Place{Switch: "0x0000000000000051", Port: 7} }), others: []kube.Object{secret},
			service: given{"/ports": `{"items":[{"guid":"` + guid11 + `","owner":"red","bound":{"switch":"0x0000000000000051","port":7}}]}`}},
		{name: "tenant: ports that it cannot have", object: redTenant(func(t *T) {
			for _, g := range []v1alpha1.GUID{guid12, "0x0000000000000013", "0x0000000000000014", "0x0000000000000015"} {
				t.Spec.Ports = append(t.Spec.Ports, v1alpha1.TenantPort{GUID: g})
			}
		}), others: []kube.Object{secret}, service: given{"POST /ports/assign": "409"}},
		{name: "tenant: a pool too many, one missing", object: redTenant(func(t *T) { t.Spec.Pools = []v1alpha1.Pool{pool} }), others: []kube.Object{secret},
			service: given{"/pools": `{"items":[` + other + `,{"first":"0x0000000000003000","last":"0x0000000000003fff","owner":"blue"}]}`}},
		{name: "tenant: a pool that it cannot have", object: redTenant(func(t *T) { t.Spec.Pools = []v1alpha1.Pool{pool} }), others: []kube.Object{secret}, service: given{"POST /pools": "409"}},
		{name: "tenant: second of its namespace", object: redTenant(func(t *T) { t.Name, t.UID = "second", "uid-second" }), others: []kube.Object{redTenant(), secret}},
		{name: "tenant: pending", object: redTenant(), others: []kube.Object{secret}, service: given{"/revisions/8": `{"item":{"revision":8}}`}},
		{name: "tenant: deleted, not ours", object: redTenant(func(t *T) { deleting(t); t.Status.Owned = false })},
		{name: "tenant: deleted, in use here", object: redTenant(func(t *T) { deleting(t) }), others: []kube.Object{secret, training(), bound()}},
		{name: "tenant: deleted, in use there", object: redTenant(func(t *T) { deleting(t) }), others: []kube.Object{secret}, service: given{"/partitions": `{"items":[{"pkey":"0x0100","name":"x"}]}`}},
		{name: "tenant: deleted", object: redTenant(func(t *T) { deleting(t) }), others: []kube.Object{secret}, service: given{"/pools": `{"items":[` + other + `]}`}},
		{name: "tenant: deleted, a second person is asked", object: redTenant(func(t *T) { deleting(t) }), others: []kube.Object{secret},
			service: given{"POST /ports/release": `{"revision":7,"words":["x"],"approval":"app-1"}`}},
		{name: "tenant: deleted, waits for a second person", object: redTenant(func(t *T) { deleting(t); t.Status.Approval = "app-1" }), others: []kube.Object{secret}, service: given{"/approvals": `{"items":[{"id":"app-1"}]}`}},
		{name: "tenant: deleted, the approval has ended", object: redTenant(func(t *T) { deleting(t); t.Status.Approval = "app-1" }), others: []kube.Object{secret}},
		{name: "tenant: deleted there, not proved", object: redTenant(func(t *T) { deleting(t) }), others: []kube.Object{secret}, service: given{"/tenants/red": "", "/revisions/9": `{"item":{"revision":9}}`}},
		{name: "tenant: deleted there, proved", object: redTenant(func(t *T) { deleting(t) }), others: []kube.Object{secret}, service: given{"/tenants/red": ""}},
	}
}

func ofPartitions() []scenario {
	type P = v1alpha1.IBPartition
	fresh := func(p *P) { p.Status, p.Finalizers = v1alpha1.IBPartitionStatus{}, nil }
	numbered := func(p *P) { p.Spec.PKey = "0x0100" }
	none, there := given{"/partitions/0x0100": ""}, given{"/partitions/0x0100": `{"item":{"pkey":"0x0100","name":"training","members":0}}`}
	refused := func(at time.Time) func(*P) {
		return func(p *P) { condition(&p.Status.Status, v1alpha1.ConditionProved, v1alpha1.ReasonRefused, at) }
	}
	del := func(p *P) { deleting(p) }
	made := func(name string, s given) scenario {
		return scenario{name: "partition: " + name, others: owner, service: s}
	}
	of := func(x scenario, change ...func(*P)) scenario { x.object = training(change...); return x }
	return []scenario{
		of(made("new, with its number", none), fresh, numbered),
		of(made("new, the service chooses", given{"/partitions/0x0105": "", "POST /partitions": `{"revision":7,"words":["x"],"pkey":"0x0105"}`}), fresh),
		of(made("new, the service has none to choose", given{"POST /partitions": "409"}), fresh),
		of(made("new, the number is taken there", nil), fresh, numbered),
		of(made("adopted", nil), fresh, numbered, func(p *P) { p.Spec.Adopt = true }),
		of(scenario{name: "partition: new, the number is taken here", others: with(training(func(p *P) { p.Name, p.UID = "other", "uid-other" })), service: none}, fresh, numbered),
		of(made("new, refused", given{"/partitions/0x0100": "", "PUT /partitions/0x0100": "409"}), fresh, numbered),
		of(made("new, somebody was first", given{"/partitions/0x0100": "", "PUT /partitions/0x0100": "412"}), fresh, numbered),
		of(made("its number was taken before it was made", given{"/partitions/0x0100": `{"item":{"pkey":"0x0100","name":"foreign"}}`}), func(p *P) { p.Status.Revision = 0 }),
		of(made("nothing had to be changed", nil), func(p *P) { p.Status.Revision = 0 }),
		of(made("no revision at all", given{"/revisions": `{"items":[]}`}), func(p *P) { p.Status.Revision = 0 }),
		of(made("settled", nil)),
		of(made("changed through the API", given{"/partitions/0x0100": `{"item":{"pkey":"0x0100","name":"training","sl":3}}`})),
		of(made("changed here", nil), func(p *P) {
			p.Generation, p.Spec.ServiceLevel, p.Spec.MTU, p.Spec.Rate, p.Spec.IPOverIB = 2, 3, 4096, "2.5", true
		}),
		of(made("changed, refused", given{"PUT /partitions/0x0100": "409"}), func(p *P) { p.Spec.ServiceLevel = 3 }),
		of(made("deleted through the API", none)),
		of(made("no rate", nil), func(p *P) { p.Spec.Rate = "fast" }),
		of(made("pending", given{"/revisions/8": `{"item":{"revision":8,"outcome":{"state":"pending"}}}`})),
		of(made("failed", given{"/revisions/8": failed8, "/revisions": `{"items":[{"revision":8}]}`})),
		of(made("failed, proved later", given{"/revisions/8": failed8})),
		of(made("failed, and later too", given{"/revisions/8": failed8, "/revisions/9": `{"item":{"revision":9,"outcome":{"state":"failed","verdict":"unknown"}}}`})),
		of(made("refused by the fabric", given{"/revisions/8": `{"item":{"revision":8,"outcome":{"state":"refused"}}}`})),
		of(made("refused a moment ago", none), refused(time.Now())),
		of(made("refused a moment ago, changed since", nil), refused(time.Now()), func(p *P) { p.Generation = 2 }),
		of(made("refused long ago", nil), refused(longAgo.Time)),
		of(scenario{name: "partition: no tenant"}),
		of(scenario{name: "partition: the tenant is not there yet", others: []kube.Object{redTenant(func(t *v1alpha1.IBTenant) { t.Status.Owned = false }), secret}}),
		of(scenario{name: "partition: the tenant has no token", others: []kube.Object{redTenant()}}),
		of(scenario{name: "partition: of two tenants the older counts", others: with(redTenant(func(t *v1alpha1.IBTenant) {
			t.Name, t.UID, t.CreationTimestamp = "another", "uid-another", metav1.NewTime(longAgo.Add(time.Hour))
		}))}),
		of(made("deleted", there), del),
		of(scenario{name: "partition: deleted, and proved at once", others: owner, service: there, then: map[string]given{"DELETE /partitions/0x0100": {"/partitions/0x0100": ""}}}, del),
		of(scenario{name: "partition: deleted, a binding is left", others: with(bound()), service: there}, del),
		of(scenario{name: "partition: deleted, a binding was never made", others: with(bound(func(b *v1alpha1.IBPortBinding) { b.Status.PKey = "" })), service: there}, del),
		of(scenario{name: "partition: deleted, a binding of another", others: with(bound(func(b *v1alpha1.IBPortBinding) { b.Spec.Partition = "other" })), service: there}, del),
		of(made("deleted, members are left", nil), del),
		of(made("deleted, another's has the number", given{"/partitions/0x0100": `{"item":{"pkey":"0x0100","name":"foreign"}}`}), del, func(p *P) { p.Status.Revision = 0 }),
		of(made("deleted, never made", none), del, func(p *P) { p.Status.PKey = "" }),
		of(made("deleted, waits for a second person", given{"/partitions/0x0100": there["/partitions/0x0100"], "/approvals": `{"items":[{"id":"app-1"}]}`}), del, func(p *P) { p.Status.Approval = "app-1" }),
		of(made("deleted, refused a moment ago", there), del, refused(time.Now())),
		of(made("deleted, it changed meanwhile", given{"/partitions/0x0100": there["/partitions/0x0100"], "DELETE /partitions/0x0100": "412"}), del),
		of(made("deleted there, not proved", given{"/partitions/0x0100": "", "/revisions/9": `{"item":{"revision":9}}`}), del),
		of(made("deleted there, failed", given{"/partitions/0x0100": "", "/revisions/9": `{"item":{"revision":9,"outcome":{"state":"failed"}}}`}), del),
		of(made("deleted there, noted, proved", none), del, func(p *P) {
			condition(&p.Status.Status, v1alpha1.ConditionReady, v1alpha1.ReasonDeleting, longAgo.Time)
		}),
	}
}

func ofBindings() []scenario {
	type B = v1alpha1.IBPortBinding
	fresh := func(b *B) { b.Status, b.Finalizers = v1alpha1.IBPortBindingStatus{}, nil }
	del := func(b *B) { deleting(b) }
	member := func(state string) string {
		return `{"item":{"port":"` + guid11 + `","membership":"full","state":"` + state + `"}}`
	}
	joins := map[string]given{"PUT " + member11: {member11: member("member")}}
	made := func(name string, s given) scenario {
		return scenario{name: "binding: " + name, others: with(training()), service: s, then: joins}
	}
	of := func(x scenario, change ...func(*B)) scenario { x.object = bound(change...); return x }
	in := func(p *v1alpha1.IBPartition) []kube.Object { return with(p) }
	place := func(b *B) { b.Spec.Port, b.Spec.Place = "", &v1alpha1.Place{Switch: "0x0000000000000051", Port: 7} }
	return []scenario{
		of(made("new", given{member11: ""}), fresh),
		of(made("new, limited, at index 0", given{member11: ""}), fresh, func(b *B) { b.Spec.Membership, b.Spec.Index0 = v1alpha1.Limited, true }),
		of(made("new, refused", given{member11: "", "PUT " + member11: "409"}), fresh),
		of(made("new, a second person is asked", given{member11: "", "PUT " + member11: `{"revision":7,"words":["x"],"approval":"app-1"}`}), fresh),
		of(made("settled", nil)),
		of(made("changed through the API", given{member11: `{"item":{"port":"` + guid11 + `","membership":"limited","state":"member"}}`})),
		of(made("index 0 changed through the API", given{member11: `{"item":{"port":"` + guid11 + `","membership":"full","index0":true,"state":"member"}}`})),
		of(made("waits for an owner", given{member11: member("waiting")})),
		of(scenario{name: "binding: the port went to another owner", others: with(training()), service: given{member11: member("waiting")}}),
		of(made("a foreign port", given{"/ports/" + guid11: `{"item":{"guid":"` + guid11 + `"}}`})),
		of(made("an unknown port", given{"/ports/" + guid11: ""}), fresh),
		of(made("a port of a pool", given{"/ports/" + guid11: "", "/pools": `{"items":[{"first":"` + guid11 + `","last":"` + guid11 + `","owner":"red"}]}`})),
		of(made("a port below a pool", given{"/ports/" + guid11: "", "/pools": `{"items":[{"first":"` + guid12 + `","last":"` + guid12 + `","owner":"red"}]}`})),
		of(made("a port above a pool", given{"/ports/" + guid11: "", "/pools": `{"items":[{"first":"0x0000000000000010","last":"0x0000000000000010","owner":"red"}]}`})),
		of(made("a port of a foreign pool", given{"/ports/" + guid11: "", "/pools": `{"items":[{"first":"` + guid11 + `","last":"` + guid11 + `"}]}`})),
		of(made("a place", nil), place),
		of(made("a place with nothing behind it", given{"/ports": `{"items":[{"guid":"` + guid11 + `","switch":"0x0000000000000051","switch_port":8},{"guid":"` + guid12 + `","switch":"0x0000000000000052","switch_port":7}]}`}), place),
		of(made("a place with another port behind it", given{"/ports": `{"items":[{"guid":"` + guid12 + `","switch":"0x0000000000000051","switch_port":7}]}`}), place),
		of(scenario{name: "binding: another was first", others: with(training(), bound(func(b *B) { b.Name, b.UID = "first", "uid-first" })), service: given{member11: ""}, then: joins}, fresh),
		of(scenario{name: "binding: another came later", others: with(training(), bound(func(b *B) { b.Name, b.UID = "second", "uid-second" })), then: joins}),
		of(scenario{name: "binding: another came earlier and has it too", others: with(training(), bound(func(b *B) { b.Name, b.UID = "a", "uid-a" })), then: joins}),
		of(scenario{name: "binding: no partition", others: owner}),
		of(scenario{name: "binding: the partition has no number", others: in(training(func(p *v1alpha1.IBPartition) { p.Status.PKey = "" }))}),
		of(scenario{name: "binding: the partition is not made", others: in(training(func(p *v1alpha1.IBPartition) { p.Status.Revision = 0 }))}),
		of(scenario{name: "binding: the partition is being deleted", others: in(training(func(p *v1alpha1.IBPartition) { deleting(p) }))}),
		of(scenario{name: "binding: the partition has another number", others: in(training(func(p *v1alpha1.IBPartition) { p.Status.PKey = "0x0101" }))}),
		of(made("refused a moment ago", nil), func(b *B) { condition(&b.Status.Status, v1alpha1.ConditionProved, v1alpha1.ReasonRefused, time.Now()) }),
		of(made("deleted", nil), del),
		of(scenario{name: "binding: deleted, and proved at once", others: with(training()), then: map[string]given{"DELETE " + member11: {member11: ""}}}, del),
		of(made("deleted, no member any more", given{member11: ""}), del),
		of(made("deleted, no partition any more", given{"/partitions/0x0100": ""}), del),
		of(made("deleted, never made", nil), del, func(b *B) { b.Status.PKey = "" }),
		of(made("deleted, waits for a second person", given{"/approvals": `{"items":[{"id":"app-1"}]}`}), del, func(b *B) { b.Status.Approval = "app-1" }),
		of(made("deleted, refused a moment ago", nil), del, func(b *B) { condition(&b.Status.Status, v1alpha1.ConditionProved, v1alpha1.ReasonRefused, time.Now()) }),
		of(made("deleted, it changed meanwhile", given{"DELETE " + member11: "412"}), del),
		of(made("deleted, not proved", given{member11: "", "/revisions/9": `{"item":{"revision":9}}`}), del),
	}
}
