package ibsimtest

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// What OpenSM leaves on ibsim is found, and an audit leaves it as it was: the
// tables, and what a manager would clear.
func TestAuditOnlyReads(t *testing.T) {
	const spec = "fattree,radix=4,levels=2"
	for _, x := range []struct {
		name, policy string
		want         []string
	}{
		{"good policy", "A=0x10 : 0x100003=full, 0x100005=full ;\n", []string{"mkey-zero", "enforcement-incapable"}},
		{"typing error", "A=0x10 : 0xZZZ=full ;\n", []string{"failed-open", "default-full", "default-members"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, topologyOf(t, spec), "")
			r.openSMTakes(x.policy)
			before, changes := r.read(true), r.switchChanges()
			for _, profile := range []string{"basic", "strict"} {
				o := r.warden("audit", "--fabric", "ibsim:"+r.sim.Name, "--json", "--profile", profile)
				var report struct {
					Findings []struct{ Check, Severity string }
				}
				if err := json.Unmarshal([]byte(o.stdout), &report); err != nil || o.status != 1 {
					t.Fatalf("audit: exit status %d, %v\n%s", o.status, err, o.stderr)
				}
				var found []string
				for _, f := range report.Findings {
					found = append(found, f.Check)
				}
				for _, want := range x.want {
					if !slices.Contains(found, want) {
						t.Errorf("%s: %s found nothing; findings of %v", profile, want, slices.Compact(found))
					}
				}
			}
			if after := r.read(true); !reflect.DeepEqual(before, after) {
				t.Errorf("before the audit:\n%+v\nafter:\n%+v", before, after)
			}
			if after := r.switchChanges(); !slices.Equal(changes, after) {
				t.Errorf("PortStateChange before the audit %v, after %v", changes, after)
			}
		})
	}
}
