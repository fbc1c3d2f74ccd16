package ufm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// TestValuesOfCalls: each value that clients send, and the fault that names what is none.
func TestValuesOfCalls(t *testing.T) {
	many := slices.Repeat([]string{"0002c90300000001"}, MaxGUIDs)
	for _, x := range []struct {
		got   func() (any, error)
		want  any
		fault string
	}{
		{func() (any, error) { return parseKey("0x5") }, ib.PKeyBase(5), ""},
		{func() (any, error) { return parseKey("0X8005") }, ib.PKeyBase(5), ""},
		{func() (any, error) { return parseKey("17") }, ib.PKeyBase(17), ""},
		{func() (any, error) { return parseKey("0x7fff") }, ib.PKeyBase(0x7fff), ""},
		{func() (any, error) { return parseKey("0x8000") }, nil, "pkey \"0x8000\": want 0x1 to 0x7ffe"},
		{func() (any, error) { return parseKey("0x0") }, nil, "pkey \"0x0\": want 0x1 to 0x7ffe"},
		{func() (any, error) { return parseKey("0x10000") }, nil, "pkey \"0x10000\": want 0x1 to 0x7ffe"},
		{func() (any, error) { return parseKey("five") }, nil, "pkey \"five\": want 0x1 to 0x7ffe"},
		{func() (any, error) { return parseGUID(" 0x0002C903:0000-0001 ") }, ib.PortGUID(0x0002c90300000001), ""},
		{func() (any, error) { return parseGUID("00000002c90300000001") }, ib.PortGUID(0x0002c90300000001), ""},
		{func() (any, error) { return parseGUID("0002c9030000001") }, nil, "GUID \"0002c9030000001\": want 16 hexadecimal digits"},
		{func() (any, error) { return parseGUID("000000002c90300000001") }, nil, "GUID \"000000002c90300000001\": want 16 hexadecimal digits"},
		{func() (any, error) { return parseGUID("0000000000000000") }, nil, "GUID \"0000000000000000\": want 16 hexadecimal digits"},
		{func() (any, error) { return parseGUID("0002c9030000000x") }, nil, "GUID \"0002c9030000000x\": want 16 hexadecimal digits"},
		{func() (any, error) { l, err := parseGUIDs(many); return len(l), err }, MaxGUIDs, ""},
		{func() (any, error) { return parseGUIDs(append(many, many[0])) }, nil, fmt.Sprintf("guids: there are %d, want at most %d", MaxGUIDs+1, MaxGUIDs)},
		{func() (any, error) { return parseGUIDs([]string{many[0], "x"}) }, nil, "GUID \"x\": want 16 hexadecimal digits"},
		{func() (any, error) { return parseMembership("") }, policy.Full, ""},
		{func() (any, error) { return parseMembership("FULL") }, policy.Full, ""},
		{func() (any, error) { return parseMembership("limited") }, policy.Limited, ""},
		{func() (any, error) { return parseMembership("both") }, policy.Both, ""},
		{func() (any, error) { return parseMembership("none") }, nil, "membership \"none\": want full or limited"},
		{func() (any, error) { return parseMTU(2) }, ib.MTU2048, ""},
		{func() (any, error) { return parseMTU(2048) }, ib.MTU2048, ""},
		{func() (any, error) { return parseMTU(4) }, ib.MTU4096, ""},
		{func() (any, error) { return parseMTU(4096) }, ib.MTU4096, ""},
		{func() (any, error) { return parseMTU(3) }, nil, "mtu_limit 3: want 2 or 4"},
		{func() (any, error) { return parseRate(7) }, nil, "rate_limit 7: want 2.5, 5, 10, 14, 20, 25, 30, 40, 56, 60, 80, 100, 112, 120, 168, 200 or 300"},
	} {
		got, err := x.got()
		if x.fault == "" && (err != nil || fmt.Sprint(got) != fmt.Sprint(x.want)) {
			t.Errorf("%v, %v; want %v", got, err, x.want)
		}
		if x.fault != "" {
			is(t, err, http.StatusBadRequest, x.fault)
		}
	}
	for _, tenths := range append([]int{20}, rates...) {
		r, err := parseRate(float64(tenths) / 10)
		if want := max(tenths, 25); err != nil || r.Tenths() != want || shownRate(r) != float64(want)/10 {
			t.Errorf("%d tenths of Gb/s: %v, %v, shown as %v", tenths, r, err, shownRate(r))
		}
	}
	if r, err := ib.RateFromGbps(4000); err != nil || shownRate(r) != 300 {
		t.Errorf("400 Gb/s are shown as %v", shownRate(r))
	}
	if shownMTU(ib.MTU4096) != 4 || shownMTU(ib.MTU2048) != 2 || shownMTU(ib.MTU256) != 2 || keyText(0x5) != "0x5" || guidText(0x2c9) != "00000000000002c9" {
		t.Error("an MTU, a number or a GUID is shown otherwise")
	}
	for text, want := range map[string]bool{"true": true, "TRUE": true, "1": true, "": false, "false": false, "yes": false, "11": false} {
		if truth(text) != want {
			t.Errorf("%q is %v", text, !want)
		}
	}
}

// is compares a fault.
func is(t *testing.T, err error, status int, want string) {
	t.Helper()
	var f *fault
	if !errors.As(err, &f) || f.status != status || f.Error() != want {
		t.Errorf("%v; want %d %s", err, status, want)
	}
}

// TestJSONOfCalls: what clients send of a flag, a text, a list and a number, and what is none.
func TestJSONOfCalls(t *testing.T) {
	for data, want := range map[string]string{
		"true": "{true true}", `"True"`: "{true true}", "1": "{true true}", "false": "{true false}", `"0"`: "{true false}", "null": "{false false}", `""`: "{false false}", `"none"`: "{false false}", "2": "2: want true or false", "[]": "[]: want true or false",
	} {
		f := flag{true, true}
		if err := f.UnmarshalJSON([]byte(data)); fmt.Sprint(f) != want && fmt.Sprint(err) != want {
			t.Errorf("flag %s: %v, %v", data, f, err)
		}
	}
	if !(flag{}).or(true) || (flag{}).or(false) || (flag{true, false}).or(true) || (flag{}).pointer() != nil || *(flag{true, true}).pointer() != true || *(flag{true, false}).pointer() != false {
		t.Error("a flag is not what it says")
	}
	for data, want := range map[string]string{`"a"`: "a", "5": "5", "1.5": "1.5", "[]": "[]: want a string", "true": "true: want a string"} {
		var x text
		if err := x.UnmarshalJSON([]byte(data)); string(x) != want && fmt.Sprint(err) != want {
			t.Errorf("text %s: %q, %v", data, x, err)
		}
	}
	for data, want := range map[string]string{`"a, b,"`: `[]string{"a", "b"}`, `""`: "[]string(nil)", `["a"]`: `[]string{"a"}`, "[]": "[]string{}", "null": "[]string(nil)", "5": "5: want a list of strings", "[5]": "[5]: want a list of strings"} {
		var x words
		if err := x.UnmarshalJSON([]byte(data)); fmt.Sprintf("%#v", []string(x)) != want && fmt.Sprint(err) != want {
			t.Errorf("list %s: %#v, %v; want %s", data, []string(x), err, want)
		}
	}
	for data, want := range map[string]string{"5": "{true 5}", `"2.5"`: "{true 2.5}", "null": "{false 0}", `"NaN"`: `"NaN": want a number`, `"Inf"`: `"Inf": want a number`, `"-Inf"`: `"-Inf": want a number`, `"x"`: `"x": want a number`, "[]": "[]: want a number"} {
		x := number{true, 9}
		if err := x.UnmarshalJSON([]byte(data)); fmt.Sprint(err) != want && (err != nil || fmt.Sprint(x) != want) {
			t.Errorf("number %s: %v, %v", data, x, err)
		}
	}
}

// TestMembersOfABody: memberships by index, or the one for all; a GUID twice is once, or a fault.
func TestMembersOfABody(t *testing.T) {
	const a, b = "0002c90300000001", "0002c90300000002"
	for _, x := range []struct{ body, want string }{
		{`{"guids":["` + a + `","` + b + `"]}`, "1 full false, 2 full false"},
		{`{"guids":"` + a + `,` + b + `","membership":"limited","index0":true}`, "1 limited true, 2 limited true"},
		{`{"guids":["` + a + `","` + b + `"],"memberships":["limited","full"]}`, "1 limited false, 2 full false"},
		{`{"guids":["` + a + `","` + a + `"]}`, "1 full false"},
		{`{"guids":[]}`, ""},
		{`{"guids":["` + a + `","` + a + `"],"memberships":["limited","full"]}`, "guids: " + a + " is there twice, with different memberships"},
		{`{"guids":["` + a + `"],"memberships":["full","full"]}`, "memberships: there are 2 for 1 guids, want as many"},
		{`{"guids":["` + a + `"],"memberships":["some"]}`, `membership "some": want full or limited`},
		{`{"guids":["` + a + `"],"membership":"some"}`, `membership "some": want full or limited`},
		{`{"guids":["x"]}`, `GUID "x": want 16 hexadecimal digits`},
	} {
		var x2 body
		if err := json.Unmarshal([]byte(x.body), &x2); err != nil {
			t.Fatal(err)
		}
		list, err := x2.members()
		var got []string
		for _, m := range list {
			got = append(got, fmt.Sprint(uint64(m.Port)&0xF, " ", m.Membership, " ", m.Index0))
		}
		if strings.Join(got, ", ") != x.want && fmt.Sprint(err) != x.want {
			t.Errorf("%s: %q, %v; want %s", x.body, got, err, x.want)
		}
	}
}

// TestLimitsOfABody: each limit by itself, and both sides of what a service level may be.
func TestLimitsOfABody(t *testing.T) {
	for data, want := range map[string]string{
		`{}`: "none none none", `{"mtu_limit":4}`: "5 none none", `{"service_level":0}`: "none 0 none", `{"service_level":"15"}`: "none 15 none", `{"rate_limit":10}`: "none none 3",
		`{"mtu_limit":3}`: "mtu_limit 3: want 2 or 4", `{"service_level":16}`: "service_level 16: want 0 to 15", `{"service_level":-1}`: "service_level -1: want 0 to 15", `{"service_level":1.5}`: "service_level 1.5: want 0 to 15",
		`{"rate_limit":7}`: "rate_limit 7: want 2.5, 5, 10, 14, 20, 25, 30, 40, 56, 60, 80, 100, 112, 120, 168, 200 or 300",
	} {
		var b body
		if err := json.Unmarshal([]byte(data), &b); err != nil {
			t.Fatal(err)
		}
		mtu, sl, rate, err := b.qos()
		got := []string{"none", "none", "none"}
		if mtu != nil {
			got[0] = fmt.Sprint(uint8(*mtu))
		}
		if sl != nil {
			got[1] = fmt.Sprint(uint8(*sl))
		}
		if rate != nil {
			got[2] = fmt.Sprint(uint8(*rate))
		}
		if fmt.Sprint(err) != want && (err != nil || strings.Join(got, " ") != want) {
			t.Errorf("%s: %q, %v; want %s", data, got, err, want)
		}
	}
	b := body{key: 5}
	for want, change := range map[string]func(b *body){"api_pkey_0x5": func(*body) {}, "mine": func(b *body) { b.Name, b.NamePrefix = "mine", "p_" }, "p_0x5": func(b *body) { b.NamePrefix = "p_" }} {
		x := b
		if change(&x); x.name() != want {
			t.Errorf("%s is called %s", want, x.name())
		}
	}
}

// TestHostLists: names as Slurm writes them, and every way in which a list is none.
func TestHostLists(t *testing.T) {
	long := strings.Repeat("h", resource.HostMax)
	for list, want := range map[string]string{
		"": "", "a": "a", " b , a,,b": "a b", "n[1-3]": "n1 n2 n3", "n[01-03,7]": "n01 n02 n03 n7", "n[08-11]x": "n08x n09x n10x n11x", "r[1-2]n[3,5]": "r1n3 r1n5 r2n3 r2n5", "n[5-5]": "n5", long: long,
		"n[1": `hosts "n[1": a bracket is missing`, "n1]": `hosts "n1]": a bracket is missing`, "n[[1]]": `hosts "n[[1]]": a bracket is missing`, "n[1]]": `hosts "n[1]]": a bracket is missing`, "]n[": `hosts "]n[": a bracket is missing`,
		"n[3-1]": `hosts "n[3-1]": want numbers and ranges in brackets`, "n[]": `hosts "n[]": want numbers and ranges in brackets`, "n[a]": `hosts "n[a]": want numbers and ranges in brackets`, "n[1-b]": `hosts "n[1-b]": want numbers and ranges in brackets`, "n[1]m[x]": `hosts "m[x]": want numbers and ranges in brackets`,
		long + "h": fmt.Sprintf("host %.40q: want at most %d bytes", long, resource.HostMax), fmt.Sprintf("n[1-%d]", HostsMax+1): fmt.Sprintf("hosts: want at most %d", HostsMax), fmt.Sprintf("n[1-%d],m", HostsMax): fmt.Sprintf("hosts: want at most %d", HostsMax),
		"n[1-100000]m[1-100000]": fmt.Sprintf("hosts: want at most %d", HostsMax), fmt.Sprintf("n[1,1-%d]", HostsMax): fmt.Sprintf("hosts: want at most %d", HostsMax),
	} {
		got, err := expandHosts(list)
		if err != nil {
			is(t, err, http.StatusBadRequest, want)
		} else if strings.Join(got, " ") != want {
			t.Errorf("%.60q: %.200q, want %.200q", list, got, want)
		}
	}
	if got, err := expandHosts(fmt.Sprintf("n[1-%d]", HostsMax)); err != nil || len(got) != HostsMax {
		t.Errorf("as many as may be: %d, %v", len(got), err)
	}
}

// TestJobsAreBounded: a tenant has so many, the oldest goes, and each has its time; those of others
// stay.
func TestJobsAreBounded(t *testing.T) {
	var l jobs
	at := time.Unix(1e9, 0)
	add := func(tenant string, n int, at time.Time) {
		l.add(job{id: fmt.Sprint(tenant, n), tenant: tenant, from: at})
	}
	add("blue", 0, at)
	for n := range JobsMax {
		add("red", n, at)
	}
	if got := l.of("red"); len(got) != JobsMax || got[0].id != "red0" {
		t.Errorf("%d jobs, the first %s", len(got), got[0].id)
	}
	add("red", JobsMax, at.Add(JobLife-1))
	if got := l.of("red"); len(got) != JobsMax || got[0].id != "red1" || len(l.of("blue")) != 1 {
		t.Errorf("%d jobs, the first %s; %d of blue", len(got), got[0].id, len(l.of("blue")))
	}
	add("zinc", 0, at.Add(JobLife))
	if got := l.of("red"); len(got) != 1 || got[0].id != fmt.Sprint("red", JobsMax) || len(l.of("blue")) != 0 || len(l.of("zinc")) != 1 {
		t.Errorf("after their time: %+v, %d of blue", got, len(l.of("blue")))
	}
}

// TestSessionsAreBounded: the same of logins.
func TestSessionsAreBounded(t *testing.T) {
	var s sessions
	at := time.Unix(1e9, 0)
	blue := s.open("blue", "b", at)
	first := s.open("red", "r", at)
	second := s.open("red", "r", at.Add(1))
	for n := range SessionsMax - 2 {
		s.open("red", "r", at.Add(time.Duration(n+2)))
	}
	has := func(id string) bool { _, is := s.list[id]; return is }
	if len(s.list) != SessionsMax+1 || !has(first) {
		t.Errorf("%d sessions", len(s.list))
	}
	s.open("red", "r", at.Add(SessionLife-1))
	if len(s.list) != SessionsMax+1 || has(first) || !has(second) || !has(blue) {
		t.Errorf("%d sessions; the oldest is there: %v, the next: %v, of another: %v", len(s.list), has(first), has(second), has(blue))
	}
	last := s.open("zinc", "z", at.Add(SessionLife))
	if has(blue) || !has(second) || !has(last) {
		t.Errorf("after its time: %v; before: %v", has(blue), has(second))
	}
	auth := known{"z": {Tenant: "zinc"}, "r": {Tenant: "other"}}
	for _, x := range []struct {
		id    string
		at    time.Time
		known bool
	}{
		{last, at.Add(2*SessionLife - 1), true}, {second, at.Add(2), false}, {"none", at, false}, {last, at.Add(2 * SessionLife), false}, {last, at.Add(SessionLife), false},
	} {
		if by, known := s.caller(auth, x.id, x.at); known != x.known || known && by.Tenant != "zinc" {
			t.Errorf("%s at %v: %+v, %v", x.id, x.at, by, known)
		}
	}
}

// known are the callers of secrets.
type known map[string]resource.Caller

func (k known) Secret(secret string) (resource.Caller, bool)     { c, is := k[secret]; return c, is }
func (known) Connection(*http.Request) (resource.Caller, bool)   { return resource.Caller{}, false }
func (known) NewSecret() (string, string)                        { return "", "" }
func (known) Refused(*http.Request, bool, string) bool           { return false }
func (known) LoggedIn(*http.Request, resource.Caller, time.Time) {}

// TestViewOfAFabric: who holds which key, the prefix of the subnet, and whether ports are guarded.
func TestViewOfAFabric(t *testing.T) {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	red, blue := b.Host(leaf, "red"), b.Host(leaf, "blue")
	subnettest.SetPKeys(red, 0x8001, 0x0001, 0, 0x7fff)
	subnettest.SetPKeys(blue, 0xffff, 0x0001, 0x8001)
	view := func() *view { return newView(b.Fabric, time.Unix(1e9, 0)) }
	v := view()
	for k, want := range map[ib.PKeyBase]string{
		1:      fmt.Sprintf("[{%d true true} {%d true false}]", red.GUID, blue.GUID),
		0x7fff: fmt.Sprintf("[{%d false false} {%d true true}]", red.GUID, blue.GUID),
		0:      "[]",
	} {
		if got := fmt.Sprint(v.holders[k]); got != want {
			t.Errorf("holders of %v: %s, want %s", k, got, want)
		}
	}
	if v.prefix != defaultPrefix || v.guarded || v.perPort {
		t.Errorf("%x %v %v", v.prefix, v.guarded, v.perPort)
	}
	b.ManagedFrom(red)
	red.Info.GIDPrefix = 0
	if view().prefix != defaultPrefix {
		t.Error("a prefix of 0")
	}
	red.Info.GIDPrefix = 7
	if view().prefix != 7 {
		t.Error("not the prefix of the manager's port")
	}
	red.InfoRead = false
	if view().prefix != defaultPrefix {
		t.Error("a prefix that was not read")
	}
	red.InfoRead = true
	ends := b.Fabric.EndPorts()
	for _, p := range ends {
		p.Info.MKey = 5
	}
	if v := view(); !v.guarded || v.perPort {
		t.Errorf("one key for all: %v %v", v.guarded, v.perPort)
	}
	for i, p := range ends {
		p.Info.MKey = ib.MKey(i + 1)
	}
	if v := view(); !v.guarded || !v.perPort {
		t.Errorf("a key for each: %v %v", v.guarded, v.perPort)
	}
	blue.InfoRead = false
	if v := view(); v.guarded || v.perPort {
		t.Errorf("one that was not read: %v %v", v.guarded, v.perPort)
	}
	if v := newView(subnettest.New().Fabric, time.Time{}); v.guarded || v.perPort {
		t.Error("no port at all is guarded")
	}
}

// TestPages: a page of links, and what is no page.
func TestPages(t *testing.T) {
	var all []link
	for n := range 45 {
		all = append(all, link{Name: fmt.Sprint(n)})
	}
	for query, want := range map[string]string{
		"": "45 0", "rpp=5": "45 0", "page_number=1": "20 0", "page_number=2": "20 20", "page_number=3": "5 40", "page_number=4": "0", "page_number=2&rpp=30": "15 30", "page_number=1&rpp=100": "45 0", "page_number=45&rpp=1": "1 44",
		"page_number=0": "fault", "page_number=1&rpp=0": "fault", "page_number=x": "fault", "page_number=1&rpp=x": "fault", "page_number=": "fault",
	} {
		q, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		out, err := (&call{query: q}).page(all)
		if want == "fault" {
			is(t, err, http.StatusBadRequest, "page_number and rpp: want numbers from 1")
			continue
		}
		list, whole := out.([]link)
		if !whole {
			list = out.(map[string]any)["data"].([]link)
		}
		got := fmt.Sprint(len(list))
		if len(list) > 0 {
			got += " " + list[0].Name
		}
		if err != nil || got != want || whole != !q.Has("page_number") {
			t.Errorf("%s: %s, %v; want %s", query, got, err, want)
		}
	}
}
