package ufm_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// everyCall is each path of the API once, with what may stand in it, in an order in
// which each can succeed. {p} is red's partition.
var everyCall = []struct{ method, path, body string }{
	{"GET", "app/ufm_version", ""},
	{"GET", "app/smconf", ""},
	{"GET", "app/tokens", ""},
	{"GET", "resources/ports", ""},
	{"GET", "resources/ports/0002c90300000011_1", ""},
	{"GET", "resources/systems", ""},
	{"GET", "resources/systems/0002c90300000010", ""},
	{"GET", "resources/links", ""},
	{"GET", "resources/vports", ""},
	{"POST", "resources/pkeys/add", `{"pkey":"0x5"}`},
	{"POST", "resources/pkeys", `{"pkey":"0x5","guids":["0002c90300000011"]}`},
	{"PUT", "resources/pkeys", `{"pkey":"0x5","guids":["0002c90300000011","0002c90300000021"]}`},
	{"GET", "resources/pkeys", ""},
	{"GET", "resources/pkeys/last_updated", ""},
	{"GET", "resources/pkeys/0x5", ""},
	{"PUT", "resources/pkeys/qos_conf", `{"pkey":"0x5","service_level":1}`},
	{"POST", "resources/pkeys/qos_conf", `{"pkey":"0x5","service_level":2}`},
	{"POST", "resources/pkeys/hosts", `{"pkey":"0x5","hosts_names":"node01"}`},
	{"GET", "jobs", ""},
	{"DELETE", "resources/pkeys/0x5/hosts/node01", ""},
	{"POST", "actions/add_guids_to_pkey", `{"pkey":"0x5","guids":["0002c90300000011"]}`},
	{"POST", "actions/remove_guids_from_pkey", `{"pkey":"0x5","guids":["0002c90300000011"]}`},
	{"GET", "actions/get_all_pkeys", ""},
	{"POST", "actions/get_all_pkeys", ""},
	{"POST", "resources/pkeys", `{"pkey":"0x5","guids":["0002c90300000011"]}`},
	{"DELETE", "resources/pkeys/0x5/guids/0002c90300000011", ""},
	{"DELETE", "resources/pkeys/0x5", ""},
}

// TestEveryPathInEverySpelling checks that each call succeeds below each prefix, with a
// slash at its end and without, and that nothing is answered by a redirect. A client that
// follows one repeats the POST as a GET and believes that it was done.
func TestEveryPathInEverySpelling(t *testing.T) {
	for _, prefix := range ufm.Prefixes {
		r := newRig(t, ufm.Options{})
		for _, form := range []string{"/%s/%s", "/%s/%s/", "//%s//%s//"} {
			for _, c := range everyCall {
				path := fmt.Sprintf(form, prefix, c.path)
				if !ufm.Owns(path) {
					t.Errorf("%s is not UFM's", path)
				}
				if out := r.ask(c.method, path, basic("red", r.secrets["red"]), c.body); out.status != 200 {
					t.Errorf("%s %s: %d %s: want 200", c.method, path, out.status, out.body)
				}
			}
		}
	}
}

// TestOddPathsAreNoRedirect sends what a ServeMux would clean, with every method.
func TestOddPathsAreNoRedirect(t *testing.T) {
	r := newRig(t, ufm.Options{})
	for _, path := range []string{
		"/ufmRest", "/ufmRest/", "/ufmRest//resources/../resources/pkeys", "/ufmRest/./resources/pkeys", "/ufmRest/resources/pkeys/..",
		"/ufmRest/resources/pkeys/%2e%2e/ports", "/ufmRest/resources%2Fpkeys", "/ufmRestV4/resources/pkeys", "/dologin", "/dologin/", "/dologin/x",
		"/ufmRest/resources/pkeys/0x5/guids", "/ufmRest/resources/pkeys/0x5/guids/", "/ufmRest/app", "/", "/ufmRest/resources/pkeys/0x5/hosts/%5B1",
	} {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"} {
			if out := r.ask(method, path, basic("red", r.secrets["red"]), "{}"); out.status >= 500 || out.status < 400 && path != "/ufmRest//resources/../resources/pkeys" {
				t.Errorf("%s %s: %d %s", method, path, out.status, out.body)
			}
		}
	}
	for path, owns := range map[string]bool{"/ufmRestV4": false, "/api/v1/ufmRest": false, "": false, "/": false, "//ufmRest": true, "/dologin/": true, "/ufmRestKrb/x": true} {
		if ufm.Owns(path) != owns {
			t.Errorf("Owns(%q): want %v", path, owns)
		}
	}
}

// TestRealClientAndServer sends over TCP with a client that follows redirects.
func TestRealClientAndServer(t *testing.T) {
	r := newRig(t, ufm.Options{})
	srv := httptest.NewServer(r.Handler)
	defer srv.Close()
	for i, path := range []string{"/ufmRest/resources/pkeys", "/ufmRest/resources/pkeys/"} {
		q, err := http.NewRequest(http.MethodPost, srv.URL+path, strings.NewReader(fmt.Sprintf(`{"pkey":"0x5","guids":["%016x"]}`, node01a+2*i)))
		if err != nil {
			t.Fatal(err)
		}
		q.SetBasicAuth("red", r.secrets["red"])
		res, err := srv.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || string(body) != "{}" || res.ContentLength != 2 {
			t.Errorf("%s: %s %q", path, res.Status, body)
		}
		if got := r.members(5); len(got) != i+1 {
			t.Errorf("after POST %s the members are %x", path, got)
		}
	}
}

// TestSpellings reads keys, GUIDs, hosts and flags as clients write them.
func TestSpellings(t *testing.T) {
	r := newRig(t, ufm.Options{})
	for _, key := range []string{`"0x0005"`, `"0x5"`, `"0X5"`, `"0x8005"`, `"5"`, `5`, `32773`, `"32773"`} {
		r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":`+key+`}`)
		r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/"+strings.Trim(key, `"`), "{}")
	}
	for _, key := range []string{`""`, `"0x"`, `"0x0"`, `"0x0000"`, `"0x8000"`, `"0x7fff"`, `"0xffff"`, `"0x10005"`, `"-5"`, `"five"`, `null`, `[5]`, `true`, `5.5`, `"0x 5"`, `""`} {
		r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":`+key+`}`)
		r.as("provider", 400, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":`+key+`}`)
	}
	r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys/add", `{}`)
	for _, g := range []string{"0002c90300000011", "0x0002c90300000011", "0X0002C90300000011", "00:02:c9:03:00:00:00:11", "0002-C903-0000-0011", "00000002c90300000011"} {
		r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["`+g+`"]}`)
		if got := r.members(5); len(got) != 1 || got[0] != node01a {
			t.Errorf("GUID %s: members %x", g, got)
		}
		r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/5/guids/"+g, "")
	}
	for _, g := range []string{"", "11", "0002c9030000001", "0002c9030000001g", "10002c90300000011", "0000000000000000", "000000000002c90300000011", "0x"} {
		r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["`+g+`"]}`)
	}
	for _, body := range []string{
		``, `[]`, `null`, `"x"`, `{`, `{"pkey":5}`, `{"pkey":5,"guids":[]}`, `{"pkey":5,"guids":null}`, `{"pkey":5,"guids":5}`, `{"pkey":5,"guids":[5]}`,
		`{"pkey":5,"guids":["0002c90300000011"],"membership":"owner"}`, `{"pkey":5,"guids":["0002c90300000011"],"index0":"perhaps"}`,
		`{"pkey":5,"guids":["0002c90300000011"],"memberships":["full","full"]}`, `{"pkey":5,"guids":["0002c90300000011"],"memberships":["none"]}`,
		`{"pkey":5,"guids":["0002c90300000011","0002c90300000011"],"memberships":["full","limited"]}`,
		`{"pkey":5,"guids":["0002c90300000011"],"mtu_limit":3}`, `{"pkey":5,"guids":["0002c90300000011"],"service_level":16}`,
		`{"pkey":5,"guids":["0002c90300000011"],"service_level":1.5}`, `{"pkey":5,"guids":["0002c90300000011"],"rate_limit":"fast"}`,
		`{"pkey":5,"guids":["0002c90300000011"],"rate_limit":1e999}`, `{"pkey":5,"guids":["0002c90300000011"]} {}`,
		`{"pkey":5,"pkey":6,"guids":["0002c90300000011"]}`, `{"pkey":6,"PKey":5,"guids":["0002c90300000011"]}`, `{"PKey":5,"guids":["0002c90300000011"]}`,
		"{\"p\u212Aey\":5,\"guids\":[\"0002c90300000011\"]}", "{\"pkey\":5,\"guid\u017F\":[\"0002c90300000011\"]}", `{"pkey":5,"guids":["0002c90300000011"],"x":{"y":1,"Y":2}}`,
		`{"pkey":5,"guids":["0002c90300000011"],"membership":"both"}`, `{"pkey":5,"guids":["0002c90300000011"],"partition_name":"a b"}`,
	} {
		r.as("red", 400, "POST", "/ufmRestV3/resources/pkeys", body)
	}
	if r.exists(5) {
		t.Error("a bad request made partition 0x0005")
	}
	// PUT empties a partition only if it says so.
	r.as("red", 200, "PUT", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":"0002c90300000011"}`)
	for _, body := range []string{`{"pkey":5}`, `{"pkey":5,"guids":null}`, `{"pkey":5,"guids":""}`, `{"pkey":5,"guids":","}`, `{"pkey":5,"guids":[""]}`, `{"pkey":5,"guids":[null]}`} {
		r.as("red", 400, "PUT", "/ufmRestV3/resources/pkeys", body)
	}
	if got := r.members(5); len(got) != 1 {
		t.Errorf("members %x", got)
	}
	r.as("red", 200, "PUT", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":[]}`)
	if got := r.members(5); len(got) != 0 || !r.exists(5) {
		t.Errorf("members %x", got)
	}
	r.as("red", 413, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["`+strings.Repeat("0", ufm.MaxBody)+`"]}`)
	// The same GUID twice is one member.
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":5,"guids":["0002c90300000011","0x0002c90300000011"]}`)
	if got := r.members(5); len(got) != 1 {
		t.Errorf("members %x", got)
	}
}

// TestRatesAreThoseThatClientsTake makes partitions with every rate and MTU by the
// service and looks what is shown: 400 and 800 Gb/s never, 2 or 4 KiB only.
func TestRatesAreThoseThatClientsTake(t *testing.T) {
	r := newRig(t, ufm.Options{})
	taken := map[float64]bool{}
	for _, x := range []float64{2.5, 5, 10, 14, 20, 25, 30, 40, 56, 60, 80, 100, 112, 120, 168, 200, 300} {
		taken[x] = true
		r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/add", fmt.Sprintf(`{"pkey":7,"rate_limit":%v}`, x))
		var got struct {
			QoS struct {
				Rate float64 `json:"rate_limit"`
			} `json:"qos_conf"`
		}
		if err := json.Unmarshal([]byte(r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys/7?qos_conf=true", "").body), &got); err != nil || got.QoS.Rate != x {
			t.Errorf("rate %v reads %v, %v", x, got.QoS.Rate, err)
		}
		r.as("red", 200, "DELETE", "/ufmRestV3/resources/pkeys/7", "")
	}
	r.as("red", 200, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":7,"rate_limit":2}`)
	for _, x := range []string{"0", "1", "2.4", "400", "600", "800", "1200", "-10", "12"} {
		r.as("red", 400, "PUT", "/ufmRestV3/resources/pkeys/qos_conf", `{"pkey":7,"rate_limit":`+x+`}`)
	}
	for rate := range ib.Rate(64) {
		for mtu := ib.MTU(1); mtu.IsValid(); mtu++ {
			if !rate.IsValid() || mtu != ib.MTU2048 && rate != 3 {
				continue // each rate once, and each MTU
			}
			r.change(resource.PutPartition{Partition: resource.Partition{PKey: 7, Name: "native", Owner: "red", Rate: rate, MTU: mtu}})
			var got struct {
				QoS struct {
					Rate float64 `json:"rate_limit"`
					MTU  int     `json:"mtu_limit"`
				} `json:"qos_conf"`
			}
			out := r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys/7?qos_conf=true", "")
			if err := json.Unmarshal([]byte(out.body), &got); err != nil || !taken[got.QoS.Rate] || got.QoS.MTU != 2 && got.QoS.MTU != 4 {
				t.Errorf("rate %v and MTU %v are shown as %s", rate, mtu, out.body)
			}
			if want := float64(rate.Tenths()) / 10; want <= 300 && taken[want] && got.QoS.Rate != want || want > 300 && got.QoS.Rate != 300 {
				t.Errorf("rate %v is shown as %v", rate, got.QoS.Rate)
			}
		}
	}
}

// TestTenantsSeeAndChangeOnlyTheirs: red and blue have a partition each, and the
// provider one.
func TestTenantsSeeAndChangeOnlyTheirs(t *testing.T) {
	r := newRig(t, ufm.Options{})
	add := func(who string, status int, k, guid int) reply {
		return r.as(who, status, "POST", "/ufmRestV3/resources/pkeys", fmt.Sprintf(`{"pkey":%d,"guids":["%016x"]}`, k, guid))
	}
	add("red", 200, 0x10, node01a)
	add("blue", 200, 0x2010, blueNode03)
	add("provider", 200, 0x4000, storage)
	for who, want := range map[string]string{"red": `["0x10","0x7fff"]`, "blue": `["0x2010","0x7fff"]`, "provider": `["0x10","0x2010","0x4000","0x7fff"]`} {
		if out := r.as(who, 200, "GET", "/ufmRestV3/resources/pkeys", ""); out.body != want {
			t.Errorf("%s sees %s: want %s", who, out.body, want)
		}
	}
	// Foreign keys and ports, whichever tenant asks; and the same answer for a key that is there
	// and one that is not.
	there, free := add("red", 400, 0x2010, node01a), add("red", 400, 0x2011, node01a)
	if strings.ReplaceAll(there.body, "0x2010", "") != strings.ReplaceAll(free.body, "0x2011", "") {
		t.Errorf("red learns from %s and %s that there is a partition 0x2010", there.body, free.body)
	}
	add("red", 400, 0x4000, node01a)
	add("red", 400, 0x10, blueNode03)
	add("red", 400, 0x10, storage)
	add("red", 400, 0x10, 0x0200000000000099)
	add("provider", 400, 0x2011, storage)    // blue's range
	add("provider", 400, 0x10, storage)      // red's partition, the provider's port
	add("provider", 400, 0x4000, blueNode03) // the provider's partition, blue's port
	add("provider", 200, 0x4000, 0x0200000000000099)
	for _, k := range []int{0, 0x7fff, 0x8000, 0xffff} {
		for _, who := range []string{"red", "provider"} {
			add(who, 400, k, node01a)
			r.as(who, 400, "PUT", "/ufmRestV3/resources/pkeys", fmt.Sprintf(`{"pkey":%d,"guids":[]}`, k))
			r.as(who, 400, "PUT", "/ufmRestV3/resources/pkeys/qos_conf", fmt.Sprintf(`{"pkey":%d,"service_level":1}`, k))
			r.as(who, 400, "POST", "/ufmRestV3/actions/remove_guids_from_pkey", fmt.Sprintf(`{"pkey":%d,"guids":["%016x"]}`, k, node01a))
			r.as(who, 400, "DELETE", fmt.Sprintf("/ufmRestV3/resources/pkeys/%#x", k), "")
			r.as(who, 400, "DELETE", fmt.Sprintf("/ufmRestV3/resources/pkeys/%#x/guids/%016x", k, node01a), "")
			r.as(who, 400, "DELETE", fmt.Sprintf("/ufmRestV3/resources/pkeys/%#x/hosts/node01", k), "")
		}
	}
	r.as("red", 404, "GET", "/ufmRestV3/resources/pkeys/0x2010?guids_data=true", "")
	if out := r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys/0x2010?guids_data=true&qos_conf=true", ""); out.body != "{}" {
		t.Errorf("red sees %s", out.body)
	}
	r.as("red", 404, "DELETE", "/ufmRestV3/resources/pkeys/0x2010", "")
	r.as("red", 400, "DELETE", fmt.Sprintf("/ufmRestV3/resources/pkeys/0x2010/guids/%016x", blueNode03), "")
	r.as("red", 400, "POST", "/ufmRestV3/actions/remove_guids_from_pkey", fmt.Sprintf(`{"pkey":"0x2010","guids":["%016x"]}`, blueNode03))
	if got := r.members(0x2010); len(got) != 1 {
		t.Errorf("blue's partition has %x", got)
	}
	for _, path := range []string{"resources/ports", "resources/systems", "resources/vports", "resources/links", "resources/pkeys?guids_data=true"} {
		out := r.as("red", 200, "GET", "/ufmRestV3/"+path, "")
		for _, foreign := range []int{swGUID, blueNode03, blueNode03 - 1, blueImpost, storage, 0x2010} {
			if strings.Contains(out.body, fmt.Sprintf("%016x", foreign)) || strings.Contains(out.body, fmt.Sprintf("%#x\"", foreign)) {
				t.Errorf("red sees %x in %s: %s", foreign, path, out.body)
			}
		}
	}
	for path, want := range map[string]int{"resources/ports": 14, "resources/ports?sys_type=Computer": 6, "resources/ports?sys_type=Switch": 8, "resources/ports?sys_type=x": 0, "resources/ports?sys_type=Switch&active=true": 6, "resources/ports?system=0002c90300000010": 1, "resources/systems": 7, "resources/systems?type=switch": 1, "resources/links": 6, "resources/vports": 1} {
		var list []any
		if out := r.as("provider", 200, "GET", "/ufmRestV3/"+path, ""); json.Unmarshal([]byte(out.body), &list) != nil || len(list) != want {
			t.Errorf("the provider sees %d in %s, want %d: %s", len(list), path, want, out.body)
		}
	}
	for query, want := range map[string]int{"page_number=1&rpp=1000000000": 6, "page_number=1&rpp=4": 4, "page_number=2&rpp=4": 2, "page_number=3&rpp=4": 0, "page_number=2": 0} {
		var page struct{ Data []any }
		if out := r.as("provider", 200, "GET", "/ufmRestV3/resources/links?"+query, ""); json.Unmarshal([]byte(out.body), &page) != nil || page.Data == nil || len(page.Data) != want {
			t.Errorf("%s: want %d links: %s", query, want, out.body)
		}
	}
	for _, query := range []string{"page_number=0", "page_number=x", "page_number=1&rpp=0", "page_number=1&rpp=-1", "page_number="} {
		r.as("provider", 400, "GET", "/ufmRestV3/resources/links?"+query, "")
	}
	r.as("red", 404, "GET", fmt.Sprintf("/ufmRestV3/resources/systems/%016x", swGUID), "")
	r.as("red", 404, "GET", fmt.Sprintf("/ufmRestV3/resources/ports/%016x_1", blueNode03), "")
}

// TestPolicyFile: partitions of the file are shown to the provider, as they are on the
// fabric, and nobody changes them by a call.
func TestPolicyFile(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.change(resource.PutFile{File: resource.File{Name: "partitions.conf", Text: "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\nlustre=0x4444, ipoib : 0x0002c90300000051=full ;\n"}})
	out := r.as("provider", 200, "GET", "/ufmRestV3/resources/pkeys", "")
	if out.body != `["0x4444","0x7fff"]` {
		t.Errorf("the provider sees %s", out.body)
	}
	out = r.as("provider", 200, "GET", "/ufmRestV3/resources/pkeys/0x4444?guids_data=true", "")
	if out.body != `{"partition":"lustre","ip_over_ib":true,"guids":[]}` {
		t.Errorf("%s: want no members, since the fabric has not the key yet", out.body)
	}
	if out := r.as("red", 200, "GET", "/ufmRestV3/resources/pkeys/0x7fff", ""); out.body != `{"partition":"management","ip_over_ib":true}` {
		t.Errorf("0x7fff is %s", out.body)
	}
	if out := r.as("provider", 400, "POST", "/ufmRestV3/resources/pkeys/add", `{"pkey":"0x4444"}`); !strings.Contains(out.body, "exist") {
		t.Errorf("%s: want a text with exist", out.body)
	}
	r.as("provider", 400, "POST", "/ufmRestV3/resources/pkeys", `{"pkey":"0x4444","guids":["0002c90300000051"]}`)
	r.as("provider", 409, "DELETE", "/ufmRestV3/resources/pkeys/0x4444", "")
	r.as("red", 404, "GET", "/ufmRestV3/resources/pkeys/0x4444", "")
}

// TestWaitingMembersAreNone: a member that another tenant has not consented to gets no
// key, and so no call shows it.
func TestWaitingMembersAreNone(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.change(resource.PutPartition{Partition: resource.Partition{PKey: 0x4000, Name: "storage"}})
	r.change(resource.SetMembers{PKey: 0x4000, Members: []resource.Member{{Port: node01a, Membership: policy.Full}, {Port: storage, Membership: policy.Full}}})
	out := r.as("provider", 200, "GET", "/ufmRestV3/resources/pkeys/0x4000?guids_data=true", "")
	if strings.Contains(out.body, fmt.Sprintf("%016x", node01a)) || !strings.Contains(out.body, fmt.Sprintf("%016x", storage)) {
		t.Errorf("the provider sees %s", out.body)
	}
}

// TestCredentials: each way in, and what is none.
func TestCredentials(t *testing.T) {
	r := newRig(t, ufm.Options{})
	r.token("red", true)
	red, blue := r.secrets["red"], r.secrets["blue"]
	for _, auth := range []string{
		basic("red", red), basic("red-1", red), "Basic " + red, "basic " + red, basic(red, ""), "Bearer " + red, "PEER:red",
		"Basic " + base64.StdEncoding.EncodeToString([]byte(red)),
	} {
		for _, prefix := range ufm.Prefixes {
			if out := r.ask("GET", "/"+prefix+"/app/tokens", auth, ""); out.status != 200 || !strings.Contains(out.body, `"username":"red"`) || strings.Contains(out.body, "blue") {
				t.Errorf("%s below %s: %d %s", auth, prefix, out.status, out.body)
			}
		}
	}
	for _, auth := range []string{
		"", "Basic", "Basic ", "Bearer", basic("blue", red), basic("", red), basic("red-2", red), basic("red", red+"x"), basic("red", ""), basic("red", blue),
		"Basic " + red + "x", "Bearer x" + red, "Digest " + red, red, "Basic " + sumOf(red), basic("red", sumOf(red)), "Negotiate YIIabc", "Basic %%%",
	} {
		for _, prefix := range ufm.Prefixes {
			if out := r.ask("GET", "/"+prefix+"/resources/pkeys", auth, ""); out.status != 401 || out.header.Get("Www-Authenticate") == "" {
				t.Errorf("%q below %s: %d %s: want 401", auth, prefix, out.status, out.body)
			}
		}
	}
	for _, auth := range []string{"Negotiate YIIabc", ""} {
		if out := r.ask("GET", "/ufmRestKrb/app/ufm_version", auth, ""); out.status != 401 || !strings.Contains(out.body, "Kerberos is not supported") {
			t.Errorf("%q: %d %s", auth, out.status, out.body)
		}
	}
	q := httptest.NewRequest("GET", "/ufmRest/resources/pkeys", nil)
	q.Header["Authorization"] = []string{basic("red", red), basic("blue", blue)}
	if out := r.send(q); out.status != 401 {
		t.Errorf("two credentials: %d %s", out.status, out.body)
	}
	// A token that only reads gets 403 for a change: another password may help.
	reads := "Basic " + r.secrets["red-reads"]
	if out := r.ask("GET", "/ufmRestV3/resources/pkeys", reads, ""); out.status != 200 {
		t.Errorf("%d %s", out.status, out.body)
	}
	if out := r.ask("POST", "/ufmRestV3/resources/pkeys/add", reads, `{"pkey":5}`); out.status != 403 || r.exists(5) {
		t.Errorf("%d %s", out.status, out.body)
	}
	if out := r.ask("POST", "/ufmRestV3/app/tokens", reads, ""); out.status != 403 {
		t.Errorf("%d %s", out.status, out.body)
	}
	// Nobody is told that a path is there before he says who he is.
	if a, b := r.ask("GET", "/ufmRest/resources/pkeys/0x5", "", ""), r.ask("GET", "/ufmRest/nothing", "", ""); a.body != b.body || a.status != b.status {
		t.Errorf("%d %s and %d %s", a.status, a.body, b.status, b.body)
	}
}

// TestTokens: made by a call, used, and ended; one made with a token that ends lasts no
// longer.
func TestTokens(t *testing.T) {
	r := newRig(t, ufm.Options{})
	make := func(auth string) (out struct {
		ID      string `json:"id"`
		Secret  string `json:"access_token"`
		Expires int64  `json:"expires_in"`
	}) {
		if err := json.Unmarshal([]byte(r.ask("POST", "/ufmRest/app/tokens", auth, "").body), &out); err != nil || out.Secret == "" {
			t.Fatalf("%v, %+v", err, out)
		}
		return out
	}
	made := make("Basic " + r.secrets["red"])
	if made.Expires != 315360000 {
		t.Errorf("it lasts %d s", made.Expires)
	}
	if out := r.ask("GET", "/ufmRestV3/app/tokens", "Basic "+made.Secret, ""); out.status != 200 || strings.Contains(out.body, made.Secret) {
		t.Errorf("%d %s", out.status, out.body)
	}
	secret, sum := r.NewSecret()
	r.change(resource.PutToken{Token: resource.Token{ID: "short", Tenant: "red", Sum: sum, Expires: begin.Add(100e9)}})
	if short := make("Basic " + secret); short.Expires != 100 {
		t.Errorf("made with a token of 100 s, it lasts %d s", short.Expires)
	}
	r.as("blue", 404, "DELETE", "/ufmRestV3/app/tokens/"+made.ID, "")
	r.as("red", 200, "DELETE", "/ufmRestV3/app/tokens/"+made.ID, "")
	if out := r.ask("GET", "/ufmRestV3/app/tokens", "Basic "+made.Secret, ""); out.status != 401 {
		t.Errorf("%d %s", out.status, out.body)
	}
}

// TestSessions: they end with time, with their token and with too many others, and a
// page of another site cannot use them.
func TestSessions(t *testing.T) {
	r := newRig(t, ufm.Options{})
	ask := func(cookie, site string) int {
		q := httptest.NewRequest("POST", "/ufmRestV2/resources/pkeys", strings.NewReader(fmt.Sprintf(`{"pkey":5,"guids":["%016x"]}`, node01a)))
		q.Header.Set("Cookie", cookie)
		if site != "" {
			q.Header.Set("Sec-Fetch-Site", site)
		}
		return r.send(q).status
	}
	first := r.session("red", r.secrets["red"])
	if !strings.HasPrefix(first, "session=") || ask(first, "") != 200 || ask(first, "same-origin") != 200 {
		t.Errorf("session %s is not taken", first)
	}
	if got := ask(first, "cross-site"); got != 403 {
		t.Errorf("for a page of another site: %d", got)
	}
	for _, auth := range []string{basic("red", r.secrets["red"]), "PEER:red"} {
		q := newRequest(t.Context(), "DELETE", "/ufmRest/resources/pkeys/5", "")
		q.Header.Set("Origin", "https://elsewhere.example")
		if tenant, peer := strings.CutPrefix(auth, "PEER:"); peer {
			q.Header.Set("X-Test-Peer", tenant)
		} else {
			q.Header.Set("Authorization", auth)
		}
		if out := r.send(q); out.status != 403 || !r.exists(5) {
			t.Errorf("%s for a page of another site: %d %s", auth, out.status, out.body)
		}
	}
	if got := ask("session=", ""); got != 401 {
		t.Errorf("an empty session: %d", got)
	}
	blue := r.session("blue", r.secrets["blue"])
	for range ufm.SessionsMax {
		r.clock.Add(1)
		r.session("red", r.secrets["red"])
	}
	if got := ask(first, ""); got != 401 {
		t.Errorf("the first of %d sessions: %d", ufm.SessionsMax+1, got)
	}
	if got := ask(blue, ""); got != 400 { // red's key: but he is known
		t.Errorf("blue's session, after red's many: %d", got)
	}
	last := r.session("red", r.secrets["red"])
	r.change(resource.DeleteToken{ID: "red-1"})
	if got := ask(last, ""); got != 401 {
		t.Errorf("a session of a token that was deleted: %d", got)
	}
	r.clock.Add(int64(ufm.SessionLife.Seconds()))
	if got := ask(blue, ""); got != 401 {
		t.Errorf("a session after its time: %d", got)
	}
	for _, form := range []url.Values{{}, {"httpd_username": {"red"}}, {"httpd_username": {"red"}, "httpd_password": {r.secrets["blue"]}}} {
		q := httptest.NewRequest("POST", "/dologin", strings.NewReader(form.Encode()))
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if out := r.send(q); out.status != 401 || out.header.Get("Set-Cookie") != "" {
			t.Errorf("login with %v: %d %s", form, out.status, out.body)
		}
	}
}

// TestLoginsAreCounted: a login that fails, and a request of nobody, are told to who counts
// them, each once; who has failed too often is told to wait.
func TestLoginsAreCounted(t *testing.T) {
	r := newRig(t, ufm.Options{})
	login := func(user, password string) reply {
		q := httptest.NewRequest("POST", "/dologin", strings.NewReader(url.Values{"httpd_username": {user}, "httpd_password": {password}}.Encode()))
		q.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		return r.send(q)
	}
	secret := r.secrets["red"]
	for _, tc := range []struct {
		do     func() reply
		many   bool
		status int
		heard  string
	}{
		{func() reply { return login("red", secret) }, true, 200, "red-1 of red until 8h0m0s"},
		{func() reply { return login("blue", secret) }, false, 401, "login true refused: the user and"},
		{func() reply { return login("red", "x") }, true, 429, "login true refused: the user and"},
		{func() reply { return r.ask("GET", "/ufmRest/app/tokens", "", "") }, true, 401, "login false refused: want a token"},
		{func() reply { return r.ask("GET", "/ufmRest/app/tokens", "Basic x", "") }, false, 401, "login false refused: the credential"},
		{func() reply { return r.ask("GET", "/ufmRestKrb/app/tokens", "Negotiate x", "") }, false, 401, "login false refused: Kerberos"},
		{func() reply { return r.ask("GET", "/ufmRest/app/tokens", "Basic "+secret, "") }, true, 200, ""},
		{func() reply { return r.ask("GET", "/ufmRest/nothing", "Basic "+secret, "") }, true, 404, ""},
	} {
		r.heard, r.tooMany = nil, tc.many
		out := tc.do()
		if out.status != tc.status || (out.header.Get("Retry-After") == "60") != (tc.status == 429) {
			t.Errorf("%d %v %s, want %d", out.status, out.header, out.body, tc.status)
		}
		if heard := strings.Join(r.heard, "; "); !strings.HasPrefix(heard, tc.heard) || len(r.heard) > 1 || (tc.heard == "") != (heard == "") || strings.Contains(heard, secret) {
			t.Errorf("heard %q, want %q", heard, tc.heard)
		}
	}
}
