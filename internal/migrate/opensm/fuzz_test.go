package opensm

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// checkReport holds for every report: each line has a place, a verdict and something to say,
// no key is in it, and the policy can be read.
func checkReport(t *testing.T, r *Report, key string) {
	t.Helper()
	for i := range r.Lines {
		l := &r.Lines[i]
		if l.First < 1 || l.Last < l.First || l.File == "" || l.What == "" {
			t.Fatalf("line %+v", l)
		}
		if l.Verdict != Taken && l.Verdict != NotNeeded && l.Verdict != NotPossible || l.Verdict != Taken && l.Why == "" {
			t.Fatalf("line %+v", l)
		}
		if key != "" && strings.Contains(l.What+l.Becomes+l.Why, key) {
			t.Fatalf("a key is in %+v", l)
		}
	}
	for _, s := range r.Configuration {
		if s.Key == "" || strings.ContainsAny(s.Key, "\n:") || key != "" && strings.Contains(s.Shown+s.From, key) {
			t.Fatalf("setting %+v", s)
		}
	}
	if lines := strings.Count(string(r.ConfigText()), "\n"); lines != len(r.Configuration)+1 {
		t.Fatalf("%d lines for %d settings:\n%s", lines, len(r.Configuration), r.ConfigText())
	}
	if _, err := policyfile.ReadYAML(r.PolicyText(), "policy.yaml"); err != nil {
		t.Fatalf("%v of\n%s", err, r.PolicyText())
	}
}

// refusal is what an error of Migrate or ReadConf is.
func refusal(t *testing.T, err error) {
	t.Helper()
	var refused *policy.Error
	if !errors.As(err, &refused) || len(refused.Faults) == 0 {
		t.Fatalf("%v (%T) is no refusal with faults", err, err)
	}
}

// FuzzConf reads any opensm.conf, with a key in it.
func FuzzConf(f *testing.F) {
	text, err := os.ReadFile("testdata/default.conf")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(text))
	for _, s := range []string{
		"sm_priority 14\r\nrouting_engine \"lash,nue,no_fallback\" # x\n", "m_key 7\nm_key_protection_level 2\nm_key_lease_period 9\n", "lmc 1\nlmc_esp0 TRUE\nsubnet_prefix 0\n",
		"qos TRUE\nqos_max_vls 2\nqos_sl2vl 0,1\nqos_ca_vlarb_low 0:4\n", "routing_engine file\nlfts_file /tmp/a: b\n", "perfmgr TRUE\nforce_link_speed 3\nforce_link_speed_ext 30\n",
		"partition_config_file\n", "vs_key 0x1\nlmc=3\n\"\n'", strings.Repeat("x", 2000), "guid \x00", "cc_key 5\ncc_cct 1:2\nsweep_interval 4294967295\nlog_flags 0xff\n",
	} {
		f.Add(s)
	}
	const key = "0x0badc0de0badc0de"
	f.Fuzz(func(t *testing.T, conf string) {
		if strings.Contains(conf, "partition_config_file") || strings.Contains(conf, "badc0de") {
			return // a file that is not there is a fault of its own
		}
		c, err := ReadConf(Text{"opensm.conf", []byte(conf + "\nm_key " + key + "\nsa_key " + key + "\nvs_key " + key + "\n")})
		if err != nil {
			refusal(t, err)
			return
		}
		for _, w := range c.Files() {
			if w.Kind == "" {
				t.Fatalf("a file of no kind: %+v", w)
			}
		}
		r, err := Migrate(c, map[Kind]Text{Partitions: {"partitions.conf", []byte("A=1 : ALL;\n")}}, Options{PolicyPath: "/x/policy.yaml", MKeyPath: "/x/m_key"})
		if err != nil {
			t.Fatal(err)
		}
		checkReport(t, r, key[2:])
	})
}

// FuzzFiles reads any text as each of the other files.
func FuzzFiles(f *testing.F) {
	for _, name := range []string{"testdata/qos-policy.conf", "testdata/qos-ulps.conf"} {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, s := range []string{
		"0x0000000000100003 0x0004 0x0007\n\n0x0000000000100003 0x0007 0x0007\n", "0x0000000000100003:1 0x0000000000200000:3\n", "0x100003 \"leaf\x1b[2J-1\"\n",
		"* *\nfe80000000000001 0x100003\n", "torus 4 4 4\nxp_link 0x1 0x2\n", "Storage=0x10,ipoib,sl=3 : 0x100004=full, 0x100007=limited ;\n", "A:ALL;B=1:SELF", "qos-ulps\ndefault:0\nsdp,port-num 1-70000:3\nend-qos-ulps",
	} {
		f.Add(s)
	}
	kinds := []Kind{Partitions, QoSPolicy, GUIDToLID, GUIDToMKey, Neighbors}
	for _, l := range listings {
		kinds = append(kinds, l.kind)
	}
	f.Fuzz(func(t *testing.T, content string) {
		c, err := ReadConf(Text{"opensm.conf", []byte("qos TRUE\nallow_both_pkeys TRUE\n")})
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds {
			files := map[Kind]Text{Partitions: {"partitions.conf", []byte("A=1,ipoib : ALL;\nB : 0x5=full;\n")}}
			files[k] = Text{string(k), []byte(content)}
			r, err := Migrate(c, files, Options{PolicyPath: "/x/policy.yaml"})
			if err != nil {
				refusal(t, err)
				continue
			}
			checkReport(t, r, "")
			for guid, lid := range r.LIDs {
				if guid == 0 || lid == 0 || lid >= 0xC000 {
					t.Fatalf("LID %d of %#x", lid, guid)
				}
			}
		}
	})
}
