package opensm

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// qosOf is what becomes of a QoS policy, beside three partitions.
func qosOf(t *testing.T, text string, qos bool) *Report {
	t.Helper()
	conf := "qos_policy_file q.conf\n"
	if qos {
		conf += "qos TRUE\n"
	}
	c, err := ReadConf(Text{"opensm.conf", []byte(conf)})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Migrate(c, map[Kind]Text{
		Partitions: {"partitions.conf", []byte("red=0x10,ipoib,sl=7 : 0x100009=full ;\nblue : 0x10000b=full ;\n")},
		QoSPolicy:  {"q.conf", []byte(text)},
	}, Options{PolicyPath: "policy.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// levelsOf are the levels of the partitions as the policy has them once it is read again.
func levelsOf(t *testing.T, r *Report) (out []string) {
	t.Helper()
	p, err := policyfile.ReadYAML(r.PolicyText(), "policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(policyfile.WriteYAML(p))) {
		line = strings.TrimSpace(line)
		for _, begins := range []string{"- name:", "sl:", "rate_limit:", "- {id:"} {
			if strings.HasPrefix(line, begins) {
				out = append(out, line)
			}
		}
	}
	return out
}

func TestQoSPolicy(t *testing.T) {
	full, err := os.ReadFile("testdata/qos-policy.conf")
	if err != nil {
		t.Fatal(err)
	}
	ulps, err := os.ReadFile("testdata/qos-ulps.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		name, text string
		qos        bool
		want       []string
		said       []string
	}{
		{"sections", string(full), true, []string{
			"- name: red", "sl: 2", "rate_limit: 10",
			"- name: blue", "sl: 1", "- {id: \"0x16\", sl: 3}", "- {id: \"0x126f\", sl: 3}",
			"- name: Default", "sl: 1", "- {id: \"0x16\", sl: 3}", "- {id: \"0x126f\", sl: 3}",
		}, []string{"not taken: mtu-limit", whySources, whyPortGroups, whySetup}},
		{"protocols", string(ulps), true, []string{
			"- name: red", "sl: 5", "- {id: \"0x17530\", sl: 2}", "- {id: rds, sl: 3}", "- {id: iser, sl: 4}",
			"- name: blue", "sl: 1", "- {id: \"0x17530\", sl: 2}", "- {id: rds, sl: 3}", "- {id: iser, sl: 4}", "- {id: \"0x6234\", sl: 6}",
			"- name: Default", "sl: 1", "- {id: \"0x17530\", sl: 2}", "- {id: rds, sl: 3}", "- {id: iser, sl: 4}", "- {id: \"0x6234\", sl: 6}",
		}, []string{whySources}},
		{"without qos", string(ulps), false, []string{"- name: red", "- name: blue"}, []string{whyNoQoS, "sl 7 counts for nothing"}},
		{"without a default", "qos-ulps\nrds : 3\nend-qos-ulps\n", true, []string{"- name: red", "sl: 7", "- name: blue"}, []string{whyNoDefault}},
		{"cut short", string(ulps[:len(ulps)-20]), true, []string{"- name: red", "sl: 7", "- name: blue"}, []string{"a section is not closed", "the end of the file"}},
		{"a P_Key of nobody", "qos-ulps\ndefault:0\nany, pkey 0x99 : 3\nend-qos-ulps\n", true, []string{"- name: red", "- name: blue"}, []string{"no partition has this P_Key"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := qosOf(t, x.text, x.qos)
			if diff := cmp.Diff(x.want, levelsOf(t, r)); diff != "" {
				t.Errorf("levels (-want +got):\n%s\nof %s", diff, r.PolicyText())
			}
			all := ""
			for _, l := range r.Lines {
				all += l.Place() + " " + l.What + ": " + string(l.Verdict) + ": " + l.Becomes + ": " + l.Why + "\n"
			}
			for _, text := range x.said {
				if !strings.Contains(all, text) {
					t.Errorf("nothing says %q in\n%s", text, all)
				}
			}
		})
	}
}
