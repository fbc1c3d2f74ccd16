package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// TestDevice: a device and each of its ports say what the snapshot says.
func TestDevice(t *testing.T) {
	s := newStand(t)
	s.tenants()
	f := s.manager.snap.Fabric
	for _, n := range f.Nodes {
		item := s.want(200, call{method: "GET", path: "/nodes/" + n.GUID().String()})["item"].(js)
		ports := item["ports"].([]any)
		want := int(n.Info.NumPorts)
		if n.Switch != nil {
			want++
		}
		if item["description"] != n.Description || item["type"] != n.Type().String() || len(ports) != want || len(item["words"].([]any)) == 0 {
			t.Errorf("%s: %v", n.Description, item)
		}
		for _, x := range ports {
			row := x.(js)
			p := n.Port(portNum(row["number"]))
			peer := "nobody"
			if at, is := row["peer"].(js); is {
				peer = fmt.Sprint(at["node"], ":", at["port"], " ", at["name"])
			}
			wantPeer := "nobody"
			if p.Peer != nil {
				wantPeer = fmt.Sprint(p.Peer.Node.GUID(), ":", p.Peer.Num, " ", p.Peer.Node.Description)
			}
			keys := 0
			for _, k := range p.PKeys {
				if k.IsValid() {
					keys++
				}
			}
			if peer != wantPeer || p.PKeysKnown() && row["keys"] != float64(keys) || p.Num != 0 && (row["state"] != p.Info.PortState.String() || row["width"] != "4X") || row["problem"] != nil {
				t.Errorf("%s: %v, want %s, %d keys", p, row, wantPeer, keys)
			}
			whole := s.want(200, call{method: "GET", path: fmt.Sprintf("/nodes/%s/ports/%d", n.GUID(), p.Num)})["item"].(js)
			if len(whole["words"].([]any)) == 0 || len(whole["pkeys"].([]any)) != keys || len(whole["unread"].([]any)) > 0 {
				t.Errorf("%s: %v", p, whole)
			}
			info := js{}
			for _, a := range whole["attributes"].([]any) {
				if a.(js)["name"] == "PortInfo" {
					for _, x := range a.(js)["fields"].([]any) {
						info[x.(js)["name"].(string)] = x.(js)["value"]
					}
				}
			}
			if info["LID"] != fmt.Sprint(p.Info.LID) || info["PortState"] != p.Info.PortState.String() || info["HOQLife"] != fmt.Sprint(p.Info.HOQLife) {
				t.Errorf("%s: PortInfo %v", p, info)
			}
		}
	}
	s.want(404, call{method: "GET", path: "/nodes/0x00000000deadbeef"})
	s.want(404, call{method: "GET", path: "/nodes/0x0000000000200000/ports/9"})
	s.want(404, call{method: "GET", path: "/nodes/" + nodeGUIDOf(s, s.hosts[0]) + "/ports/0"})
	s.want(422, call{method: "GET", path: "/nodes/0x0000000000200000/ports/255"})
}

// TestKeysOfDevicesAreNotTold: an M_Key and an SM_Key that a snapshot has are in no answer.
func TestKeysOfDevicesAreNotTold(t *testing.T) {
	s := newStand(t)
	s.tenants()
	p := endOf(s, s.hosts[0])
	p.Info.MKey, p.Key, p.SMInfo.SMKey, p.SMInfoRead = 0xC0FFEE0DDBA11, 0xC0FFEE0DDBA11, 0xC0FFEE0DDBA11, true
	for _, as := range []string{"", "red"} {
		for _, path := range []string{"/map", "/nodes/" + p.Node.GUID().String(), "/nodes/" + p.Node.GUID().String() + "/ports/1"} {
			text := strings.ToLower(s.do(call{as: as, method: "GET", path: path}).Body.String())
			for _, form := range []string{"c0ffee", fmt.Sprint(0xC0FFEE0DDBA11)} {
				if strings.Contains(text, form) {
					t.Errorf("%s as %q tells a key", path, as)
				}
			}
			if strings.HasSuffix(path, "/1") && (strings.Count(text, "not shown") != 2) {
				t.Errorf("%s as %q: want that there are an M_Key and an SM_Key", path, as)
			}
		}
	}
}

// TestDevicesOfATenant: of a device with ports of several owners each is told of its own, of
// others' devices nothing, and of a switch no more than its GUID.
func TestDevicesOfATenant(t *testing.T) {
	s := newStand(t)
	s.tenants()
	f := s.manager.snap.Fabric
	own, other := endOf(s, s.hosts[0]), endOf(s, s.hosts[4])
	leaf := own.Peer.Node
	fence := []views.Fence{{At: own.Peer.Place(), Reason: "not on the cable list: blue-1 is expected"}}
	s.api.options.Cabling = &cabled{is: views.Cabling{List: listOf(f), Fences: fence, Differences: func(*observed.Fabric) []views.Difference {
		return []views.Difference{{Node: own.Node.GUID().String(), Port: 1, Kind: "moved", Text: "expected blue-1"}, {Node: own.Node.GUID().String(), Kind: "renamed", Text: "was blue-1"}}
	}}}
	own.PKeys[0] = 0x8222 // of nobody whom red sees
	absent := s.do(call{as: "red", method: "GET", path: "/nodes/0x00000000deadbeef"}).Body.String()
	for _, n := range []*observed.Node{leaf, other.Node} {
		for _, path := range []string{"/nodes/" + n.GUID().String(), "/nodes/" + n.GUID().String() + "/ports/1"} {
			w := s.do(call{as: "red", method: "GET", path: path})
			if got := strings.ReplaceAll(w.Body.String(), n.GUID().String(), "0x00000000deadbeef"); w.Code != http.StatusNotFound || got != absent {
				t.Errorf("%s of %s: %d %s, want what is said of one that is not there: %s", path, n.Description, w.Code, got, absent)
			}
		}
	}
	for _, path := range []string{"/nodes/" + own.Node.GUID().String(), "/nodes/" + own.Node.GUID().String() + "/ports/1"} {
		w := s.do(call{as: "red", method: "GET", path: path})
		for _, word := range []string{"blue", leaf.Description, "spine", "cable list", "list of cables", `"level"`, `"group"`, "M_Key guards"} {
			if w.Code != 200 || strings.Contains(w.Body.String(), word) {
				t.Errorf("%s as red: %d, has %q: %s", path, w.Code, word, w.Body)
			}
		}
		if !strings.Contains(w.Body.String(), leaf.GUID().String()) {
			t.Errorf("%s as red does not say to which switch the port is cabled", path)
		}
	}
	// The provider is told all of it.
	text := s.do(call{method: "GET", path: "/nodes/" + own.Node.GUID().String() + "/ports/1"}).Body.String() + s.do(call{method: "GET", path: "/nodes/" + own.Node.GUID().String()}).Body.String()
	for _, word := range []string{"By the list of cables: expected blue-1.", "By the list of cables: was blue-1.", leaf.Description, "kept out by the switch port"} {
		if !strings.Contains(text, word) {
			t.Errorf("the provider is not told %q: %s", word, text)
		}
	}
	if text := s.do(call{method: "GET", path: fmt.Sprintf("/nodes/%s/ports/%d", leaf.GUID(), own.Peer.Num)}).Body.String(); !strings.Contains(text, "It is fenced: not on the cable list: blue-1 is expected.") {
		t.Errorf("the provider is not told of the fence: %s", text)
	}
	// Cabled to each other, and one of two ports each.
	observed.Connect(own, other)
	s.fresh()
	text = s.do(call{as: "red", method: "GET", path: "/nodes/" + own.Node.GUID().String() + "/ports/1"}).Body.String()
	if strings.Contains(text, other.Node.GUID().String()) || !strings.Contains(text, "It is cabled to a device that is not yours.") {
		t.Errorf("red is told who is at the other end of its cable: %s", text)
	}
	s.want(404, call{as: "blue", method: "GET", path: "/nodes/" + own.Node.GUID().String() + "/ports/1"})
}

// TestCables: the differences are those of the list, page by page, for the provider.
func TestCables(t *testing.T) {
	s := newStand(t)
	s.tenants()
	if w := s.do(call{method: "GET", path: "/cables"}); w.Code != 200 || strings.Contains(w.Body.String(), "listed") || !strings.Contains(w.Body.String(), `"items":[]`) {
		t.Errorf("without a list: %d %s", w.Code, w.Body)
	}
	asked := 0
	c := views.Cabling{List: listOf(s.manager.snap.Fabric), Differences: func(*observed.Fabric) (out []views.Difference) {
		asked++
		for i := range 12 {
			out = append(out, views.Difference{Node: "0x0000000000200000", Name: "leaf-1", Port: i, Kind: "missing", Text: fmt.Sprint("expected ", i)})
		}
		return out
	}}
	s.api.options.Cabling = &cabled{is: c}
	var texts []string
	path, cursor := "/cables?limit=5", ""
	for range 3 {
		page := s.want(200, call{method: "GET", path: path})
		if page["listed"] != float64(len(s.manager.snap.Fabric.Links())) {
			t.Errorf("%v cables are listed", page["listed"])
		}
		for _, x := range page["items"].([]any) {
			texts = append(texts, x.(js)["text"].(string))
		}
		cursor, _ = page["next"].(string)
		path = "/cables?limit=5&cursor=" + cursor
	}
	if len(texts) != 12 || texts[0] != "expected 0" || texts[11] != "expected 11" || !slices.Contains(texts, "expected 7") || cursor != "" || asked != 1 {
		t.Errorf("%q, compared %d times", texts, asked)
	}
	s.fresh()
	s.want(200, call{method: "GET", path: "/cables"})
	if asked != 2 {
		t.Errorf("a fabric that was read again was compared %d times, want 2", asked)
	}
	s.want(403, call{as: "red", method: "GET", path: "/cables"})
}

// TestMissingDevice: the provider is told where a device should be that is listed and was not
// found; a tenant nothing.
func TestMissingDevice(t *testing.T) {
	s := newStand(t)
	s.tenants()
	list := listOf(s.manager.snap.Fabric)
	list.Devices = append(list.Devices, views.MapDevice{GUID: 0xdead, Type: ib.NodeCA, Name: "gone"})
	leaf := endOf(s, s.hosts[0]).Peer.Node
	list.Cables = append(list.Cables, views.Cable{A: observed.Place{Node: leaf.GUID(), Port: 8}, B: observed.Place{Node: 0xdead, Port: 1}})
	s.api.options.Cabling = &cabled{is: views.Cabling{List: list}}
	item := s.want(200, call{method: "GET", path: "/nodes/0x000000000000dead"})["item"].(js)
	words := fmt.Sprint(item["words"])
	if item["state"] != "missing" || item["description"] != "gone" || item["group"] != leaf.Description || !strings.Contains(words, "was not found") || !strings.Contains(words, "Its port 1 should be cabled to port 8 of "+leaf.Description+".") {
		t.Errorf("%v", item)
	}
	s.want(404, call{method: "GET", path: "/nodes/0x000000000000dead/ports/1"})
	s.want(404, call{method: "GET", path: "/nodes/0x000000000000beef"})
	s.want(404, call{as: "red", method: "GET", path: "/nodes/0x000000000000dead"})
}

// TestDrainedDevice: the words say how many routes still lead over a drained switch.
func TestDrainedDevice(t *testing.T) {
	s := newStand(t)
	const spine = "0x0000000000200004"
	words := func() string {
		return fmt.Sprint(s.want(200, call{method: "GET", path: "/nodes/" + spine})["item"].(js)["words"])
	}
	if strings.Contains(words(), "drained") {
		t.Error(words())
	}
	s.want(200, call{method: "POST", path: "/drains", body: js{"switch": spine}})
	routes := 0
	for _, x := range s.want(200, call{method: "GET", path: "/drains"})["items"].([]any) {
		routes += int(x.(js)["routes"].(float64))
	}
	want := "nothing leads over it to somewhere else"
	if routes > 0 {
		want = fmt.Sprintf("%d entries of the forwarding tables of other switches still lead over it", routes)
	}
	if !strings.Contains(words(), want) {
		t.Errorf("%s: want %q", words(), want)
	}
}

// portNum is the number of a port in an answer.
func portNum(v any) ib.PortNum { return ib.PortNum(v.(float64)) }
