package policyfile

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// TestTrusted: ports that the policy trusts are read, found, and written again;
// what selects nobody is warned of, and no description makes anybody trusted.
func TestTrusted(t *testing.T) {
	const text = `version: 1
default: none
trusted: [admins, 0x11, {at: "leaf-1:3"}]
groups:
  admins: [{port: 0x12}]
partitions:
  - {name: admins, members: {full: [admins]}}
`
	p, err := ReadYAML([]byte(text), "policy")
	if err != nil || len(p.Trusted) != 3 {
		t.Fatalf("%v, %+v", err, p)
	}
	again, err := ReadYAML(WriteYAML(p), "written")
	if err != nil || !bytes.Equal(WriteYAML(again), WriteYAML(p)) || len(again.Trusted) != 3 {
		t.Errorf("written and read again: %v\n%s", err, WriteYAML(p))
	}
	ports := []policy.EndPort{{PortGUID: 0x11}, {PortGUID: 0x12}, {PortGUID: 0x13}}
	r, err := p.Resolve(ports, map[string]ib.PKeyBase{"admins": 1})
	if err != nil || !slices.Equal(r.Trusted, []ib.PortGUID{0x11, 0x12}) {
		t.Errorf("trusted are %v (%v), want 0x11 and 0x12", r, err)
	}
	if !slices.ContainsFunc(r.Warnings, func(f policy.Fault) bool { return strings.Contains(f.Found, "trusted: no end port") }) {
		t.Errorf("no warning of a place without a port: %v", r.Warnings)
	}
	for _, bad := range []string{`trusted: ["admin-*"]`, `trusted: [nobody]`, `trusted: [0x11, 0x11]`, `trusted: 5`} {
		if p, err := ReadYAML([]byte("version: 1\n"+bad+"\n"), "bad"); err == nil {
			t.Errorf("%s was taken: %+v", bad, p.Trusted)
		}
	}
}
