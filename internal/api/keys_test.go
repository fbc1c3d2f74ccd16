package api

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var placeholder = regexp.MustCompile(`\{[a-z_]+\}`)

// TestKeysAreReadOneWay: a key of a body that a proxy and the service could take for two
// different ones is refused, for every operation that has a body and every key of it: in
// other letters, by the folding of Unicode (U+212A is a k, U+017F an s), once and twice.
func TestKeysAreReadOneWay(t *testing.T) {
	s := newStand(t)
	s.tenants()
	doc, _ := described(t)
	revision := s.want(200, call{method: "GET", path: "/revisions"})["revision"]
	tried := 0
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			var properties []string
			for _, content := range op.RequestBody.Value.Content { // JSON, or a merge patch
				properties = slices.AppendSeq(properties, maps.Keys(content.Schema.Value.Properties))
			}
			for _, name := range properties {
				if name == "$schema" {
					continue
				}
				others := []string{strings.ToUpper(name)}
				for from, to := range map[string]string{"k": "\u212A", "s": "\u017F"} {
					if strings.Contains(name, from) {
						others = append(others, strings.Replace(name, from, to, 1))
					}
				}
				for _, other := range others {
					for _, body := range []string{
						fmt.Sprintf(`{%q:1,"%s":2}`, name, other), fmt.Sprintf(`{"%s":1,%q:2}`, other, name), fmt.Sprintf(`{"%s":1,"%s":2}`, other, other),
					} {
						w := s.do(call{method: method, path: placeholder.ReplaceAllString(strings.TrimPrefix(path, Prefix), "0x0100"), body: body})
						if w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity || !regexp.MustCompile(`differ only in|is there twice`).MatchString(w.Body.String()) {
							t.Errorf("%s %s %s: %d %s: want that a key is there twice", method, path, body, w.Code, w.Body)
						}
						tried++
					}
				}
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d bodies were tried", tried)
	}
	// Once, in other letters, with all the rest right: a proxy that looks for pkey sees none.
	host := s.hosts[0]
	s.want(201, call{as: "red", method: "PUT", path: "/partitions/0x0100", body: js{"name": "one"}})
	revision = revision.(float64) + 1
	for _, c := range []call{
		{method: "POST", path: "/partitions", body: `{"PKey":"0x0101","name":"two"}`},
		{method: "POST", path: "/partitions", body: "{\"p\u212Aey\":\"0x0101\",\"name\":\"two\"}"},
		{method: "POST", path: "/partitions", body: `{"pkey":"0x0101","Name":"two"}`},
		{method: "POST", path: "/partitions/0x0100/members", body: `{"members":[{"Port":"` + host + `","membership":"full"}]}`},
		{method: "POST", path: "/partitions/0x0100/members", body: `{"Members":[{"port":"` + host + `","membership":"full"}]}`},
		{method: "POST", path: "/tokens", body: `{"Tenant":"red"}`},
		{method: "POST", path: "/tokens", body: `{"tenant":"red","Read_Only":true}`},
		{method: "POST", path: "/tokens", body: `{"tenant":"red","keys":{"First":"0x0100","last":"0x0100"}}`},
	} {
		if w := s.do(c); w.Code != http.StatusBadRequest && w.Code != http.StatusUnprocessableEntity || !strings.Contains(w.Body.String(), "want it as") {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, w.Code, w.Body)
		}
	}
	if now := s.want(200, call{method: "GET", path: "/revisions"})["revision"]; now != revision {
		t.Errorf("revision %v: want %v, for nothing was to change", now, revision)
	}
}
