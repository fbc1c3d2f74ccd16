package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestExportKeys writes the keys, cables and LIDs of a subnet, and reads them as those of another manager.
func TestExportKeys(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	b.PortInfo.LMC = 1
	keyed, bare, unread := b.Host(leaf, "keyed"), b.Host(leaf, "bare"), b.Host(leaf, "unread")
	keyed.Key, leaf.Ports[0].Key = 0xaa, 0xbb
	bare.Info.LID, unread.InfoRead = 0, false
	dir := filepath.Join(t.TempDir(), "out")
	if n, err := ExportKeys(dir, b.Fabric); n != 2 || err != nil {
		t.Fatalf("%d keys, %v", n, err)
	}
	if err := ExportSAKey(dir, 0xcafe); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"guid2mkey": "0x0000000000001001 0x00000000000000bb\n\n0x0000000000001011 0x00000000000000aa\n\n",
		"guid2lid":  "0x0000000000001001 0x0001 0x0001\n\n0x0000000000001011 0x0002 0x0003\n\n",
		"neighbors": "0x0000000000001001:1 0x0000000000001011:1\n\n0x0000000000001011:1 0x0000000000001001:1\n\n" +
			"0x0000000000001001:2 0x0000000000001021:1\n\n0x0000000000001021:1 0x0000000000001001:2\n\n" +
			"0x0000000000001001:3 0x0000000000001031:1\n\n0x0000000000001031:1 0x0000000000001001:3\n\n",
		"sa_key": "0x000000000000cafe\n",
	} {
		if got := contents(t, filepath.Join(dir, name)); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	d, err := OpenDataDir(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := d.loadForeign(); err != nil || f.Any() {
		t.Errorf("keys that nobody imported: %+v, %v", f, err)
	}
	if n, err := d.ImportForeign(filepath.Join(dir, "guid2mkey"), filepath.Join(dir, "neighbors")); n != 2 || err != nil {
		t.Errorf("%d taken over, %v", n, err)
	}
	f, err := d.loadForeign()
	if err != nil || f.Of[keyed.GUID] != 0xaa || f.Neighbor[mkey.PortOf{GUID: leaf.Ports[0].GUID, Port: 2}] != bare.GUID || len(f.Neighbor) != 6 {
		t.Errorf("%+v, %v", f, err)
	}
	for text, want := range map[string]string{
		"0x10:1\n": "want 2 words", "0x10:1 0x20\n": "line 1: want two ports, each a GUID, a colon and a number", "\n0x10:1 x:2\n": "line 2: want two ports",
		"0x10:1 0x20:x\n": "want two ports", "0x10:300 0x20:1\n": "want two ports",
	} {
		bad := filepath.Join(dir, "bad")
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ImportForeign(filepath.Join(dir, "guid2mkey"), bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
		if _, err := d.ImportForeign(bad, ""); err == nil || !strings.HasPrefix(err.Error(), bad+", line ") {
			t.Errorf("%q as keys: %v", text, err)
		}
	}
	if _, err := d.ImportForeign(filepath.Join(dir, "none"), ""); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(d.File("foreign-neighbors"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.loadForeign(); err == nil {
		t.Error("cables that make no sense are taken")
	}
	if _, err := ExportKeys(filepath.Join(dir, "bad"), b.Fabric); err == nil {
		t.Error("exported into a file")
	}
	k := &Keyring{Foreign: f, dir: d}
	if err := k.DropForeign(); err != nil || k.Foreign.Any() {
		t.Errorf("not forgotten: %v", err)
	}
	if _, err := os.Stat(d.File("foreign-neighbors")); !os.IsNotExist(err) {
		t.Errorf("the cables of the other manager: %v", err)
	}
	k.Foreign = f
	if err := k.DropForeign(); err == nil {
		t.Error("keys that are not there are forgotten without an error")
	}
	memory := &Keyring{Foreign: f}
	if err := memory.DropForeign(); err != nil || !memory.Foreign.Any() {
		t.Errorf("of a ring that keeps nothing: %v", err)
	}
}

// TestRecoverKeys enters which key each port was seen to have, and names those that obey none.
func TestRecoverKeys(t *testing.T) {
	list, err := cables.Read([]byte(declared), "cables")
	if err != nil {
		t.Fatal(err)
	}
	ring := mkey.NewRing([mkey.SecretSize]byte{5})
	k := &Keyring{Ring: ring, Book: new(mkey.Book)}
	if err := k.Expect(list); err != nil {
		t.Fatal(err)
	}
	if n := len(k.Book.Entries()); n != 3 {
		t.Fatalf("%d ports of a list of a switch and two hosts", n)
	}
	if err := k.Expect(list); err != nil || len(k.Book.Entries()) != 3 {
		t.Errorf("expected again: %d, %v", len(k.Book.Entries()), err)
	}
	b := subnettest.New()
	leaf := b.Switch(5, "leaf")
	b.GUID = 0x2000
	one := b.Host(leaf, "one")
	b.GUID = 0x3000
	two := b.Host(leaf, "two")
	free, strange, mum := b.Host(leaf, "free"), b.Host(leaf, "strange"), b.Host(leaf, "mum")
	b.ManagedFrom(free)
	keys := &mkey.Keys{Ring: ring, Book: k.Book, Further: 4}
	one.Key = ring.MKey(mkey.IDOf(one), 3)
	one.Info.MKey, one.Info.MKeyProtectBits = one.Key, 2
	two.Key, two.Info.MKeyProtectBits = 0x1234, 2
	strange.Info.MKeyProtectBits = 1
	mum.InfoRead = false // it said who it is, and no more
	silent := &leaf.Ports[4]
	silent.Silent = true
	found, locked := k.Recover(keys, b.Fabric)
	if want := "[two strange mum the device behind leaf:4]"; fmt.Sprint(locked) != want || found != 1 {
		t.Errorf("found %d, locked %v, want 1, %v", found, locked, want)
	}
	if s := keys.Find(mkey.IDOf(one), mkey.PlaceOf(one.Via)); s == nil || keys.Generation(s, one.Key) != 3 {
		t.Errorf("%+v", s)
	}
}

// declared is a switch with two hosts.
const declared = `switchguid=0x1000(1001)
Switch	4 "S-0000000000001000"		# "leaf" base port 0 lid 1 lmc 0
[1]	"H-0000000000002000"[1](2001) 		# "one" lid 2 4xHDR
[2]	"H-0000000000003000"[1](3001) 		# "two" lid 3 4xHDR

caguid=0x2000
Ca	1 "H-0000000000002000"		# "one"
[1](2001) 	"S-0000000000001000"[1]		# lid 2 lmc 0 "leaf" lid 1 4xHDR

caguid=0x3000
Ca	1 "H-0000000000003000"		# "two"
[1](3001) 	"S-0000000000001000"[2]		# lid 3 lmc 0 "leaf" lid 1 4xHDR
`

// TestOpenNames says what is wrong with the name of a fabric.
func TestOpenNames(t *testing.T) {
	for _, x := range []struct {
		spec string
		guid ib.PortGUID
		want string
	}{
		{"nothing", 0, `--fabric "nothing": want sim, sim:FILE, sim:GENERATOR, ibsim[:SOCKNAME] or umad[:DEVICE[/PORT]]`},
		{"ibsim", 7, "--guid: ibsim attaches by node name: set SIM_HOST"},
		{"sim:nowhere,x=1", 0, "sim:"},
		{"sim", 0xdead, "--guid: no port of this fabric has GUID 0x000000000000dead"},
		{"umad:mlx5_0/x", 0, ""},
	} {
		l, err := Open(x.spec, x.guid)
		if l != nil || err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: %v, %v; want %q", x.spec, l, err, x.want)
		}
	}
	t.Setenv(RootVariable, t.TempDir())
	if d, err := Devices(); len(d) != 0 || Root() == "/" {
		t.Errorf("adapters in an empty root %q: %v, %v", Root(), d, err)
	}
	if _, err := Open("umad", 0); err == nil || !strings.HasPrefix(err.Error(), ErrUnreachable.Error()+": ") {
		t.Errorf("umad without adapters: %v", err)
	}
	t.Setenv(RootVariable, "")
	if Root() != "/" {
		t.Errorf("root %q", Root())
	}
	l, err := Open("sim", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := CheckLIDs(l, 0); err != nil {
		t.Errorf("the demonstration needs too many LIDs: %v", err)
	}
	large, err := Open("sim:fattree,radix=12,levels=3", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer large.Close()
	for lmc, fits := range map[ib.LMC]bool{0: true, 6: true, 7: false} { // 432 hosts, and 49,151 LIDs
		if err := CheckLIDs(large, lmc); (err == nil) != fits {
			t.Errorf("LMC %d: %v", lmc, err)
		}
		if err := CheckLIDs(struct{ link.Link }{large}, lmc); err != nil {
			t.Errorf("of a fabric that is not simulated here: %v", err)
		}
	}
	demo := topology.Demo()
	node, num := firstEndPort(demo)
	if demo.Nodes[0].Type == ib.NodeSwitch && num != 0 || demo.Nodes[0].Type != ib.NodeSwitch && num != 1 || node != demo.Nodes[0].GUID {
		t.Errorf("attached to %v port %d", node, num)
	}
}
