package ibsimd_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/sim/sma"
	"github.com/ibwarden/ibwarden/internal/simserve/ibsimd"
	"github.com/ibwarden/ibwarden/internal/topology"
	"github.com/ibwarden/ibwarden/test/need"
)

// twoTenants is a policy for the demonstration fabric.
const twoTenants = "Red=0x10 : " + guidRed1 + "=full, " + guidRed2 + "=full ;\nBlue=0x20 : " + guidBlue1 + "=full ;\n"

// expect checks that an audit finds something.
func (r *auditReport) expect(t *testing.T, check, where, read string) {
	t.Helper()
	if r.has(check, where, read) {
		return
	}
	t.Errorf("no %s at %q with %q", check, where, read)
	for _, f := range r.Findings[:min(len(r.Findings), 60)] {
		t.Logf("%+v", f)
	}
}

// A key that somebody writes into a table of his own stays through light sweeps
// of OpenSM's and through a SIGHUP, and an audit finds it.
func TestAuditFindsForeignKeyUnderOpenSM(t *testing.T) {
	need.Long(t, "waits for OpenSM to sweep again")
	t.Parallel()
	tools := needTools(t)
	s := serve(t, topology.Demo(), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
	o := a.openSM(twoTenants, up)
	settle(t, s)

	host, _, err := s.Topology().Attach("blue-1")
	if err != nil {
		t.Fatal(err)
	}
	keys := func() (table []ib.PKey) {
		if err := s.Do(func(f *fabric.Fabric) { table = slices.Clone(f.Agent(host.GUID).PKeys(1)) }); err != nil {
			t.Fatal(err)
		}
		return table
	}
	const index = 5
	var block smp.PKeyTable
	copy(block.Keys[:], keys())
	block.Keys[index] = 0x8010
	c := attach(t, s.Name(), "blue-1")
	d := directed(1, mad.MethodSet, smp.AttrPKeyTable, 0)
	if err := block.Encode((*[64]byte)(d.mad[64:])); err != nil {
		t.Fatal(err)
	}
	if r := c.query(d); r.status != 0 {
		t.Fatal(r)
	}
	c.ask(ctlDisconnect, nil)
	ups := func() int { return strings.Count(o.text(), up) }
	before := ups()
	if err := o.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	a.waitFor("OpenSM has swept", func() bool { return ups() > before })
	settle(t, s)
	if keys()[index] != 0x8010 {
		t.Error("OpenSM has put the table right: this is no weakness any more")
	}
	r := a.audit("--policy", a.file("intended.conf", twoTenants))
	r.expect(t, "policy-drift", "blue-1", "0x8010")
	r.expect(t, "tenants-joined", guidBlue1, "0x8010")
}

// With more keys than a switch port holds, within its last block, OpenSM cuts the
// list and lets the port check: partitions are black holes.
func TestAuditFindsCutListUnderOpenSM(t *testing.T) {
	need.Long(t, "waits for OpenSM to sweep again")
	t.Parallel()
	tools := needTools(t)
	config := fabric.DefaultConfig()
	config.Profile = func(n *topology.Node, c *sma.Config) {
		if n.Type == ib.NodeSwitch {
			c.Switch.PartitionEnforcementCap = 16
		}
	}
	s := serve(t, topology.Demo(), ibsimd.Config{Fabric: config})
	a := at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t)}
	a.openSM(keysFor(20, guidRed1), up)
	settle(t, s)
	r := a.audit()
	r.expect(t, "switch-narrower-than-host", "leaf", "red-1")
}

// A standby that takes over writes what its own file says.
func TestAuditFindsTakeoverUnderOpenSM(t *testing.T) {
	need.Long(t, "waits for OpenSM to sweep again")
	t.Parallel()
	tools := needTools(t)
	s := serve(t, topology.Demo(), ibsimd.Config{Fabric: fabric.DefaultConfig()})
	here := func(host string) at { return at{TB: t, tools: tools, socket: s.Name(), dir: workDir(t), host: host} }
	first, second := here("mgmt-1"), here("storage-1")
	impatient := []string{"sminfo_polling_timeout 200", "polling_retry_number 2"}
	master := first.openSM(twoTenants, up, impatient...)
	second.openSM(strings.ReplaceAll(twoTenants, "0x20", "0x30"), "Entering STANDBY state", impatient...)
	settle(t, s)
	policy, earlier := first.file("intended.conf", twoTenants), first.dir+"/earlier.snap"
	path, err := ibwarden()
	if err != nil {
		t.Fatal(err)
	}
	first.run(path, "snapshot", "--fabric", "ibsim:"+s.Name(), "-o", earlier)
	if r := first.audit("--policy", policy); r.has("policy-drift", "", "") {
		t.Error("the master's fabric is not as its policy says")
	}
	master.stop()
	second.waitForLog(up)
	settle(t, s)
	r := first.audit("--policy", policy, "--since", earlier)
	r.expect(t, "policy-drift", "blue-1", "0x8030")
	r.expect(t, "takeover-changed", "", "")
}
