package admission

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ibwarden/ibwarden/kubernetes/api/v1alpha1"
)

// cluster is what an API server has.
type cluster struct {
	kube.Reader
	tenants    []v1alpha1.IBTenant
	partitions []v1alpha1.IBPartition
	bindings   []v1alpha1.IBPortBinding
	fails      error // of what is read of a namespace
	noTenants  error // of the tenants
}

func (c *cluster) List(_ context.Context, list kube.ObjectList, options ...kube.ListOption) error {
	var o kube.ListOptions
	o.ApplyOptions(options)
	switch list := list.(type) {
	case *v1alpha1.IBTenantList:
		list.Items = c.tenants
		return c.noTenants
	case *v1alpha1.IBPartitionList:
		for _, x := range c.partitions {
			if x.Namespace == o.Namespace {
				list.Items = append(list.Items, x)
			}
		}
	case *v1alpha1.IBPortBindingList:
		for _, x := range c.bindings {
			if x.Namespace == o.Namespace {
				list.Items = append(list.Items, x)
			}
		}
	}
	return c.fails
}

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func guid(n int) v1alpha1.GUID { return v1alpha1.GUID(fmt.Sprintf("0x%016x", n)) }

// tenant is one that has a namespace of its name, 16 keys from first, and a pool of ports.
func tenant(name string, first, pool int, ports ...int) v1alpha1.IBTenant {
	t := v1alpha1.IBTenant{ObjectMeta: named(name)}
	t.Spec.Namespace = name
	t.Spec.PKeys = v1alpha1.PKeyRange{First: key(first), Last: key(first + 15)}
	for _, p := range ports {
		t.Spec.Ports = append(t.Spec.Ports, v1alpha1.TenantPort{GUID: guid(p)})
	}
	if pool > 0 {
		t.Spec.Pools = []v1alpha1.Pool{{First: guid(pool), Last: guid(pool + 15)}}
	}
	return t
}

func key(n int) v1alpha1.PKey { return v1alpha1.PKey(fmt.Sprintf("0x%04x", n)) }

func check(t *testing.T, what string, err error, want string) {
	t.Helper()
	if got := ""; err != nil {
		if got = err.Error(); got != want {
			t.Errorf("%s: %s\nwant: %s", what, got, want)
		}
	} else if want != "" {
		t.Errorf("%s: allowed; want: %s", what, want)
	}
}

var errGone = errors.New("the API server does not answer")

// TestTenants: an IBTenant that would have another's namespace, keys, ports or pools is refused,
// at every bound of a range; itself is no other.
func TestTenants(t *testing.T) {
	blue := tenant("blue", 0x100, 0x1000, 7, 8)
	for name, x := range map[string]struct {
		change func(*v1alpha1.IBTenant)
		want   string
	}{
		"apart":               {func(*v1alpha1.IBTenant) {}, ""},
		"namespace":           {func(r *v1alpha1.IBTenant) { r.Spec.Namespace = "blue" }, "spec.namespace: blue is the namespace of IBTenant blue"},
		"keys just below":     {func(r *v1alpha1.IBTenant) { r.Spec.PKeys = v1alpha1.PKeyRange{First: key(0xF0), Last: key(0xFF)} }, ""},
		"keys up to its last": {func(r *v1alpha1.IBTenant) { r.Spec.PKeys = v1alpha1.PKeyRange{First: key(0xF0), Last: key(0x100)} }, "spec.pkeys: 0x00f0-0x0100: IBTenant blue has 0x0100-0x010f"},
		"keys from its last":  {func(r *v1alpha1.IBTenant) { r.Spec.PKeys = v1alpha1.PKeyRange{First: key(0x10F), Last: key(0x200)} }, "spec.pkeys: 0x010f-0x0200: IBTenant blue has 0x0100-0x010f"},
		"keys just above":     {func(r *v1alpha1.IBTenant) { r.Spec.PKeys = v1alpha1.PKeyRange{First: key(0x110), Last: key(0x200)} }, ""},
		"keys inside":         {func(r *v1alpha1.IBTenant) { r.Spec.PKeys = v1alpha1.PKeyRange{First: key(0x105), Last: key(0x106)} }, "spec.pkeys: 0x0105-0x0106: IBTenant blue has 0x0100-0x010f"},
		"keys around":         {func(r *v1alpha1.IBTenant) { r.Spec.PKeys = v1alpha1.PKeyRange{First: key(1), Last: key(0x7000)} }, "spec.pkeys: 0x0001-0x7000: IBTenant blue has 0x0100-0x010f"},
		"a port":              {func(r *v1alpha1.IBTenant) { r.Spec.Ports = append(r.Spec.Ports, v1alpha1.TenantPort{GUID: guid(8)}) }, "spec.ports: 0x0000000000000008 is a port of IBTenant blue"},
		"another port":        {func(r *v1alpha1.IBTenant) { r.Spec.Ports = append(r.Spec.Ports, v1alpha1.TenantPort{GUID: guid(9)}) }, ""},
		"pool just below":     {func(r *v1alpha1.IBTenant) { r.Spec.Pools = []v1alpha1.Pool{{First: guid(0xFF0), Last: guid(0xFFF)}} }, ""},
		"pool up to its":      {func(r *v1alpha1.IBTenant) { r.Spec.Pools = []v1alpha1.Pool{{First: guid(0xFF0), Last: guid(0x1000)}} }, "spec.pools: 0x0000000000000ff0-0x0000000000001000: IBTenant blue has 0x0000000000001000-0x000000000000100f"},
		"pool from its":       {func(r *v1alpha1.IBTenant) { r.Spec.Pools = []v1alpha1.Pool{{First: guid(0x100F), Last: guid(0x1011)}} }, "spec.pools: 0x000000000000100f-0x0000000000001011: IBTenant blue has 0x0000000000001000-0x000000000000100f"},
		"pool just above":     {func(r *v1alpha1.IBTenant) { r.Spec.Pools = []v1alpha1.Pool{{First: guid(0x1010), Last: guid(0x1011)}} }, ""},
	} {
		red := tenant("red", 0x300, 0x3000, 1, 2)
		x.change(&red)
		was := tenant("red", 0x300, 0x3000, 1, 2)
		v := tenants{&cluster{tenants: []v1alpha1.IBTenant{red, blue}}} // itself is there too
		_, err := v.ValidateCreate(t.Context(), &red)
		check(t, name+" made", err, x.want)
		want := x.want
		if name == "namespace" {
			want = "spec.namespace: blue: cannot be changed: delete the IBTenant, and make another"
		}
		_, err = v.ValidateUpdate(t.Context(), &was, &red)
		check(t, name+" changed", err, want)
		_, err = v.ValidateUpdate(t.Context(), &red, red.DeepCopy())
		check(t, name+": labels", err, "")
		_, err = v.ValidateDelete(t.Context(), &red)
		check(t, name+" deleted", err, "")
	}
	red := tenant("red", 0x300, 0)
	v := tenants{&cluster{noTenants: errGone}}
	_, err := v.ValidateCreate(t.Context(), &red)
	check(t, "unread", err, errGone.Error())
	was := tenant("red", 0x400, 0)
	_, err = v.ValidateUpdate(t.Context(), &was, &red)
	check(t, "unread", err, errGone.Error())
}

// TestPartitions: a partition has a number of its namespace's range, that no other one has, and
// keeps it.
func TestPartitions(t *testing.T) {
	older := tenant("red", 0x200, 0)
	older.CreationTimestamp = metav1.NewTime(time.Unix(1000, 0))
	younger := tenant("second", 0x700, 0)
	younger.Spec.Namespace, younger.CreationTimestamp = "red", metav1.NewTime(time.Unix(2000, 0))
	partition := func(namespace, name string, spec, status v1alpha1.PKey) v1alpha1.IBPartition {
		p := v1alpha1.IBPartition{ObjectMeta: named(name)}
		p.Namespace, p.Spec.PKey, p.Status.PKey = namespace, spec, status
		return p
	}
	c := &cluster{tenants: []v1alpha1.IBTenant{younger, older, tenant("blue", 0x100, 0)}, partitions: []v1alpha1.IBPartition{
		partition("red", "storage", key(0x205), ""), partition("red", "given", "", key(0x206)), partition("blue", "theirs", key(0x207), ""),
	}}
	const outside = ": namespace red may have 0x0200-0x020f"
	for pkey, want := range map[v1alpha1.PKey]string{
		"": "", key(0x1FF): "spec.pkey: 0x01ff" + outside, key(0x200): "", key(0x20F): "", key(0x210): "spec.pkey: 0x0210" + outside, key(0x705): "spec.pkey: 0x0705" + outside,
		key(0x205): "spec.pkey: 0x0205 is the number of IBPartition storage", key(0x206): "spec.pkey: 0x0206 is the number of IBPartition given", key(0x207): "",
	} {
		p := partition("red", "new", pkey, "")
		_, err := partitions{c}.ValidateCreate(t.Context(), &p)
		check(t, string(pkey), err, want)
	}
	own := partition("red", "storage", key(0x205), "")
	_, err := partitions{c}.ValidateCreate(t.Context(), &own)
	check(t, "itself", err, "")
	other := partition("green", "new", "", "")
	_, err = partitions{c}.ValidateCreate(t.Context(), &other)
	check(t, "a namespace of nobody", err, "no IBTenant has the namespace green: want the cluster's administrator to make one")
	_, err = partitions{&cluster{tenants: c.tenants, noTenants: errGone}}.ValidateCreate(t.Context(), &own)
	check(t, "tenants unread", err, errGone.Error())
	_, err = partitions{&cluster{tenants: c.tenants, fails: errGone}}.ValidateCreate(t.Context(), &own)
	check(t, "partitions unread", err, errGone.Error())
	moved := partition("red", "storage", key(0x206), "")
	_, err = partitions{c}.ValidateUpdate(t.Context(), &own, &moved)
	check(t, "another number", err, `spec.pkey: "0x0206": cannot be changed: make another IBPartition`)
	_, err = partitions{c}.ValidateUpdate(t.Context(), &own, own.DeepCopy())
	check(t, "the same number", err, "")
	_, err = partitions{c}.ValidateDelete(t.Context(), &own)
	check(t, "deleted", err, "")
}

// TestBindings: a binding is of a port of its namespace, once in a partition, and keeps both.
func TestBindings(t *testing.T) {
	binding := func(namespace, name, partition string, spec, status v1alpha1.GUID) v1alpha1.IBPortBinding {
		b := v1alpha1.IBPortBinding{ObjectMeta: named(name)}
		b.Namespace, b.Spec.Partition, b.Spec.Port, b.Status.Port = namespace, partition, spec, status
		return b
	}
	c := &cluster{tenants: []v1alpha1.IBTenant{tenant("red", 0x200, 0x3000, 1, 2, 3), tenant("blue", 0x100, 0, 7)}, bindings: []v1alpha1.IBPortBinding{
		binding("red", "one", "storage", guid(1), ""), binding("red", "two", "storage", "", guid(2)), binding("red", "unbound", "storage", "", ""),
		binding("blue", "theirs", "storage", guid(3), ""),
	}}
	for name, x := range map[string]struct {
		b    v1alpha1.IBPortBinding
		want string
	}{
		"its port":            {binding("red", "new", "storage", guid(3), ""), ""},
		"of its pool":         {binding("red", "new", "storage", guid(0x3000), ""), ""},
		"the last of it":      {binding("red", "new", "storage", guid(0x300F), ""), ""},
		"before its pool":     {binding("red", "new", "storage", guid(0x2FFF), ""), "spec.port: 0x0000000000002fff is no port of namespace red"},
		"beyond it":           {binding("red", "new", "storage", guid(0x3010), ""), "spec.port: 0x0000000000003010 is no port of namespace red"},
		"another's":           {binding("red", "new", "storage", guid(7), ""), "spec.port: 0x0000000000000007 is no port of namespace red"},
		"no port":             {binding("red", "new", "storage", "", ""), ""},
		"bound":               {binding("red", "new", "storage", guid(1), ""), "spec.port: IBPortBinding one has 0x0000000000000001 in this partition already"},
		"bound by its place":  {binding("red", "new", "storage", guid(2), ""), "spec.port: IBPortBinding two has 0x0000000000000002 in this partition already"},
		"another partition":   {binding("red", "new", "compute", guid(1), ""), ""},
		"itself":              {binding("red", "one", "storage", guid(1), ""), ""},
		"namespace of nobody": {binding("green", "new", "storage", guid(1), ""), "no IBTenant has the namespace green: want the cluster's administrator to make one"},
	} {
		_, err := bindings{c}.ValidateCreate(t.Context(), &x.b)
		check(t, name, err, x.want)
	}
	own := binding("red", "one", "storage", guid(1), "")
	_, err := bindings{&cluster{tenants: c.tenants, fails: errGone}}.ValidateCreate(t.Context(), &own)
	check(t, "bindings unread", err, errGone.Error())
	for name, change := range map[string]func(*v1alpha1.IBPortBinding){
		"partition": func(b *v1alpha1.IBPortBinding) { b.Spec.Partition = "compute" },
		"port":      func(b *v1alpha1.IBPortBinding) { b.Spec.Port = guid(2) },
		"place":     func(b *v1alpha1.IBPortBinding) { b.Spec.Place = new(v1alpha1.Place) },
		"":          func(b *v1alpha1.IBPortBinding) { b.Labels = map[string]string{"a": "b"} },
	} {
		now, want := own.DeepCopy(), "spec: the partition and the port cannot be changed: make another IBPortBinding"
		if change(now); name == "" {
			want = ""
		}
		_, err = bindings{c}.ValidateUpdate(t.Context(), &own, now)
		check(t, "another "+name, err, want)
	}
	_, err = bindings{c}.ValidateDelete(t.Context(), &own)
	check(t, "deleted", err, "")
}
