package umadtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/test/need"
)

// TestOpenSMOfATenant: root on a tenant's host starts Debian's OpenSM with the
// highest priority. ibwarden says so within a moment and every table stays as it
// is; another OpenSM loses the fabric to it.
func TestOpenSMOfATenant(t *testing.T) {
	need.Long(t, "OpenSM, which needs some seconds to do what it can")
	needPrograms(t, "opensm")
	for _, manager := range []string{"OpenSM", "ibwarden"} {
		t.Run("the manager is "+manager, func(t *testing.T) {
			r := newRig(t, "fattree,radix=4,levels=2")
			hosts := r.hosts()
			conf := r.file("policy.conf", policy(hosts[1:3], hosts[3:5]))
			said := filepath.Join(r.dir, "said")
			words := must(binary()) + " run --fabric umad --quarantine 0s --policy " + conf
			if manager == "OpenSM" {
				words = "opensm -F /dev/null -e -P " + conf + " -f " + filepath.Join(r.dir, "first.log")
			}
			r.start("", "sh", "-c", "exec "+words+" >"+said+" 2>&1")
			says := func(text string) func() bool {
				return func() bool {
					got, _ := os.ReadFile(said) // it is not there at first
					return strings.Contains(string(got), text)
				}
			}
			tables := func() string {
				return r.ask("", "ibwarden", "show", "pkeys", "--json", "--fabric", "umad")
			}
			if manager == "ibwarden" {
				r.eventually("ibwarden has a verdict", says("verdict:"))
			} else {
				r.eventually("OpenSM has written the tables", func() bool { return strings.Contains(tables(), `"0x8010"`) })
			}
			before := tables()
			rogue := hosts[4].ID
			r.start(rogue, "opensm", "-F", os.DevNull, "-e", "-p", "15", "-f", filepath.Join(r.dir, "opensm.log"))
			if manager == "OpenSM" {
				r.eventually("the tenant's OpenSM has taken the fabric", func() bool { return tables() != before && !strings.Contains(tables(), `"0x8010"`) })
				return
			}
			began := time.Now()
			r.eventually("ibwarden raises the alarm", says("ALARM: a subnet manager that does not count"))
			t.Logf("event after %v, including the start of OpenSM", time.Since(began).Round(10*time.Millisecond))
			time.Sleep(5 * time.Second) // for OpenSM to do what it can
			if now := tables(); now != before {
				t.Errorf("tables are\n%s\nwere\n%s", now, before)
			}
			if says("standing by")() || says("was overwritten")() {
				text, _ := os.ReadFile(said)
				t.Errorf("ibwarden says:\n%s", text)
			}
		})
	}
}
