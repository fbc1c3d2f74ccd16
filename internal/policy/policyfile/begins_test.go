package policyfile

import (
	"fmt"
	"testing"
)

// TestEveryKeyBeginsAPolicy: a policy in YAML is taken for one whichever key it begins with,
// quoted or not, behind remarks and empty lines, and with blanks before the colon.
func TestEveryKeyBeginsAPolicy(t *testing.T) {
	for _, key := range YAMLKeys() {
		for _, form := range []string{"%s: x\n", "%s:\n  - x\n", "%q: x\n", "'%s': x\n", "%s : x\n", "\n# remark\n%s: x\n", "\uFEFF%s: x\n"} {
			if text := fmt.Sprintf(form, key); !isYAML([]byte(text), "policy") {
				t.Errorf("%q is taken for partitions.conf", text)
			}
		}
		if text := key + "=0x1 : ALL ;\n"; isYAML([]byte(text), "policy") {
			t.Errorf("%q is taken for YAML", text)
		}
	}
}
