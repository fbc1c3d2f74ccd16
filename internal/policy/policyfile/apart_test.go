package policyfile

import (
	"bytes"
	"slices"
	"testing"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// TestApart: GUIDs and ranges of them are read in order and written again.
func TestApart(t *testing.T) {
	p, err := ReadYAML([]byte("version: 1\napart: [0x12, 0x200-0x2ff, 0x10-0x11, 0x13]\ndefault: none\n"), "policy")
	if err != nil {
		t.Fatal(err)
	}
	if want := []policy.GUIDRange{{First: 0x10, Last: 0x11}, {First: 0x12, Last: 0x12}, {First: 0x13, Last: 0x13}, {First: 0x200, Last: 0x2FF}}; !slices.Equal(p.Apart, want) {
		t.Errorf("apart is %v: want %v", p.Apart, want)
	}
	again, err := ReadYAML(WriteYAML(p), "written")
	if err != nil || !bytes.Equal(WriteYAML(again), WriteYAML(p)) || !slices.Equal(again.Apart, p.Apart) {
		t.Errorf("written and read again: %v\n%s", err, WriteYAML(p))
	}
	for _, bad := range []string{"0", "0x0", "12", "0x5-0x4", "red", "0x5-", "-0x5", "{}"} {
		if p, err := ReadYAML([]byte("version: 1\napart: ["+bad+"]\ndefault: none\n"), "bad"); err == nil {
			t.Errorf("%s was taken: %v", bad, p.Apart)
		}
	}
}
