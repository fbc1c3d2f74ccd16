package cables

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// TestLearning: a list comes from the best of up to three sweeps; a sweep that contradicts nothing ends it.
func TestLearning(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	whole := len(f.Links())
	doubts := func(ids ...string) func(*observed.Port) string {
		return func(p *observed.Port) string {
			for _, id := range ids {
				if p == port(t, n, f, id, 1) {
					return "it leads elsewhere now"
				}
			}
			return ""
		}
	}
	own := func(p *observed.Port) string {
		if p == f.Self || p == f.Self.Peer {
			return "it is contradicted"
		}
		return ""
	}
	for _, x := range []struct {
		name   string
		sweeps []func(*observed.Port) string
		cables int // of the result; -1 for an error
		left   bool
		more   bool
	}{
		{"nothing is contradicted", []func(*observed.Port) string{doubts()}, whole, false, false},
		{"nothing any more", []func(*observed.Port) string{doubts("red-1"), doubts()}, whole, false, false},
		{"one each time", []func(*observed.Port) string{doubts("red-1"), doubts("red-1"), doubts("red-1")}, whole - 1, true, true},
		{"the best is the first", []func(*observed.Port) string{doubts("red-1"), doubts("red-1", "blue-6"), doubts("red-1", "blue-6")}, whole - 1, true, true},
		{"the best is the last", []func(*observed.Port) string{doubts("red-1", "blue-6"), doubts("red-1", "blue-6"), doubts("red-1")}, whole - 1, true, true},
		{"nothing can be learned", []func(*observed.Port) string{own, own, own}, -1, false, false},
		{"something once", []func(*observed.Port) string{own, doubts("red-1"), own}, whole - 1, true, true},
	} {
		var learning Learning
		disputes := 0
		disputed := func() map[observed.Place]bool {
			disputes++
			return map[observed.Place]bool{{Node: 7}: true}
		}
		for i, doubt := range x.sweeps {
			out, again, err := learning.Take(f, doubt, disputed)
			if last := i == len(x.sweeps)-1; again == last {
				t.Errorf("%s: sweep %d: again %v", x.name, i+1, again)
			} else if !last {
				if !learning.Last[observed.Place{Node: 7}] || disputes != 1 || err != nil || out.List != nil {
					t.Errorf("%s: sweep %d: %v, disputed asked %d times, %v", x.name, i+1, learning.Last, disputes, err)
				}
				continue
			}
			if x.cables < 0 {
				if err == nil || out.List != nil {
					t.Errorf("%s: a list of %d cables, %v", x.name, out.List.Cables(), err)
				}
			} else if err != nil || out.List.Cables() != x.cables || (len(out.Left) > 0) != x.left || out.More != x.more {
				t.Errorf("%s: %d cables, %d left out, more %v, %v; want %d", x.name, out.List.Cables(), len(out.Left), out.More, err, x.cables)
			}
			if learning.tries != 0 || learning.best != nil || learning.Last != nil {
				t.Errorf("%s: %+v is kept", x.name, learning)
			}
		}
	}
}

// TestChecks changes one thing at a time that a device says of itself.
func TestChecks(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	list, _ := learned(t, f)
	host, spine := port(t, n, f, "red-1", 1), port(t, n, f, "spine-1", 1)
	infoOf := func(p *observed.Port) smp.NodeInfo {
		info := p.Node.Info
		info.LocalPortNum, info.PortGUID = p.Num, p.Agent().GUID
		return info
	}
	for _, p := range []*observed.Port{host, spine} {
		at := p.Peer.Place()
		name := strings.TrimSuffix(list.Name(p.Place()), ":1")
		for _, x := range []struct {
			name             string
			change           func(*smp.NodeInfo)
			here, device, of string // what Check, CheckDevice and CheckOwn say
		}{
			{"itself", func(*smp.NodeInfo) {}, "", "", ""},
			{"another node", func(i *smp.NodeInfo) { i.NodeGUID = 0xBAD }, "expected " + name, "no such device is listed: a device that says it is port ", ""},
			{"another port", func(i *smp.NodeInfo) { i.LocalPortNum = 3 }, "expected " + name, "", ""},
			{"another kind", func(i *smp.NodeInfo) { i.NodeType = ib.NodeRouter }, "expected " + name, "no such device is listed: ", "the list has it as a "},
			{"another size", func(i *smp.NodeInfo) { i.NumPorts = 77 }, "expected " + name, "no such device is listed: ", "the list has it as a "},
			{"another port GUID", func(i *smp.NodeInfo) { i.PortGUID = 0xBAD }, "expected " + name, map[bool]string{true: "no such device is listed: "}[p == spine], ""},
		} {
			info := infoOf(p)
			x.change(&info)
			for what, c := range map[string]struct {
				err  error
				want string
			}{"Check": {list.Check(at, &info), x.here}, "CheckDevice": {list.CheckDevice(&info), x.device}, "CheckOwn": {list.CheckOwn(&info), x.of}} {
				if (c.err != nil) != (c.want != "") || c.err != nil && !strings.HasPrefix(c.err.Error(), c.want) {
					t.Errorf("%s of %s, %s: %v, want %q", what, p, x.name, c.err, c.want)
				}
			}
		}
	}
	info := infoOf(host)
	if err := list.Check(observed.Place{Node: spine.Node.GUID(), Port: 200}, &info); err == nil || !strings.HasPrefix(err.Error(), "nothing is listed there, found a device that says it is port 1 of ") {
		t.Errorf("where nothing is listed: %v", err)
	}
	guid, own := list.PortGUID(host.Place()), observed.Place{Node: host.Node.GUID(), Port: 9}
	if guid != host.GUID || list.PortGUID(own) != 0 || list.PortGUID(observed.Place{Node: 7}) != 0 || (*List)(nil).PortGUID(host.Place()) != 0 {
		t.Errorf("port GUIDs: %v of the host", guid)
	}
}

// TestLettersOfSpelling: a name of these letters stands as it is, any other is the GUID.
func TestLettersOfSpelling(t *testing.T) {
	for name, plain := range map[string]bool{
		"azAZ09._-/": true, "a": true, "z": true, "A": true, "Z": true, "0": false, "a0": true, "a9": true, "b`": false, "b{": false, "b@": false, "b[": false, "b:": false, "b,": false,
		"-b": false, "b c": false, "bü": false, "b$": false, "b-": true, ".b": true, "_": true, "/b": true,
	} {
		n := topology.Demo()
		i := slices.IndexFunc(n.Nodes, func(x *topology.Node) bool { return x.ID == "leaf-1" })
		if i < 0 {
			t.Fatal("no leaf-1")
		}
		n.Nodes[i].Description = name
		at := observed.Place{Node: n.Nodes[i].GUID, Port: 3}
		want := at.String()
		if plain {
			want = name + ":3"
		}
		if got := Of(n).Spelling(at); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

// TestNamesOfPorts: what a person types for a port or a move, and what is said of what cannot be one.
func TestNamesOfPorts(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	list, _ := learned(t, f)
	leaf, red := port(t, n, f, "leaf-1", 0).Node.GUID(), port(t, n, f, "red-1", 1).Node.GUID()
	for _, x := range []struct {
		name string
		want observed.Place
		err  string
	}{
		{"leaf-1:7", observed.Place{Node: leaf, Port: 7}, ""},
		{"leaf-1:254", observed.Place{Node: leaf, Port: 254}, ""},
		{leaf.String() + ":1", observed.Place{Node: leaf, Port: 1}, ""},
		{"leaf-1", observed.Place{}, `port "leaf-1": want a device and a port number, such as leaf-1:7`},
		{"leaf-1:0", observed.Place{}, `port "leaf-1:0": want a port number of 1 to 254 after the colon`},
		{"leaf-1:255", observed.Place{}, `port "leaf-1:255": want a port number of 1 to 254 after the colon`},
		{"leaf-1:x", observed.Place{}, `port "leaf-1:x": want a port number of 1 to 254 after the colon`},
		{":1", observed.Place{}, `port ":1": no device without a name`},
		{"laef-1:1", observed.Place{}, `port "laef-1:1": no device "laef-1"`},
	} {
		got, err := list.Find(x.name, nil)
		if got != x.want || (err != nil) != (x.err != "") || err != nil && !strings.HasPrefix(err.Error(), x.err) {
			t.Errorf("%q: %v, %v; want %v, %q", x.name, got, err, x.want, x.err)
		}
	}
	for _, x := range []struct {
		name       string
		device, to observed.Place
		ok         bool
		err        string
	}{
		{"leaf-1:7", observed.Place{}, observed.Place{}, false, ""},
		{"leaf-1:7=red-1", observed.Place{Node: red, Port: 1}, observed.Place{Node: leaf, Port: 7}, true, ""},
		{"leaf-1:7=red-1:1", observed.Place{Node: red, Port: 1}, observed.Place{Node: leaf, Port: 7}, true, ""},
		{"leaf-1:7=leaf-1", observed.Place{}, observed.Place{}, true, `"leaf-1": want a port of it, such as leaf-1:1`},
		{"leaf-1=red-1", observed.Place{}, observed.Place{}, true, `port "leaf-1": want a device and a port number`},
		{"leaf-1:7=0x7", observed.Place{}, observed.Place{}, true, `"0x7": want a port of it`},
		{"leaf-1:7=nobody", observed.Place{}, observed.Place{Node: leaf, Port: 7}, true, `port "nobody": want a device and a port number`},
	} {
		device, to, ok, err := list.FindMove(x.name)
		if device != x.device || to != x.to || ok != x.ok || (err != nil) != (x.err != "") || err != nil && !strings.HasPrefix(err.Error(), x.err) {
			t.Errorf("%q: %v to %v, %v, %v; want %+v", x.name, device, to, ok, err, x)
		}
	}
	unlisted := Of(&topology.Netlist{})
	if at, err := unlisted.Find("red-1:1", f); err != nil || at.Node != red {
		t.Errorf("a device that was found and is not listed: %v, %v", at, err)
	}
	if _, _, err := list.Accept(f, observed.Place{Node: leaf}); err == nil || errors.Is(err, ErrNotAcceptable) || !strings.HasSuffix(err.Error(), ": the port was not found") {
		t.Errorf("port 0: %v", err)
	}
}

// TestGUIDsOfPortsAreLearned: a port has the GUID in the list that it was found with, whatever the
// device's others are like.
func TestGUIDsOfPortsAreLearned(t *testing.T) {
	n := topology.Demo()
	f := found(t, n)
	red := port(t, n, f, "red-1", 1)
	red.GUID = 0xABCDEF
	list, left := learned(t, f)
	if got := list.PortGUID(red.Place()); got != 0xABCDEF || len(left) > 0 {
		t.Errorf("learned as %v, left out %v", got, left)
	}
	at, behind, ok := list.Place(0xABCDEF)
	if at != red.Place() || behind != red.Peer.Place() || !ok {
		t.Errorf("it is %v behind %v, %v", at, behind, ok)
	}
	for _, x := range f.Nodes {
		for i := range x.Ports {
			if p := &x.Ports[i]; p.Peer != nil && p.IsEnd() && list.PortGUID(p.Place()) != p.GUID {
				t.Errorf("%s: %v, found with %v", p, list.PortGUID(p.Place()), p.GUID)
			}
		}
	}
}
