package ufm_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/api/ufm"
)

// named finds the names of what is shown, or its GUID where it has none.
var named = regexp.MustCompile(`"(?:name|virtual_port_guid)":"([^"]*)"|{"guid":"([^"]*)","system_guid"`)

// TestInventoryCalls: what each caller is shown of the fabric, by every word of a query.
// testdata/inventory.txt has all of it: IBWARDEN_UPDATE=1 writes it, and the difference is to be read.
func TestInventoryCalls(t *testing.T) {
	r := newRig(t, ufm.Options{})
	f := testFabric()
	f.Nodes[0].Ports[2].Info.PortState, f.Nodes[0].Ports[2].Info.PortPhysicalState = smp.PortInit, smp.PhysTraining
	f.Nodes[2].Ports[1].Info.PortState = smp.PortArmed
	f.Nodes[3].Ports[1].InfoRead = false
	f.Nodes[4].Description = "single"
	for i, phys := range []smp.PhysState{smp.PhysDisabled, smp.PhysSleep} {
		f.Nodes[0].Ports[7+i].Info.PortPhysicalState = phys
	}
	r.manager.fabric.Store(f)
	r.clock.Add(10)
	var out strings.Builder
	for _, path := range []string{
		"ports", "ports?active=true", "ports?active=1", "ports?active=no", "ports?sys_type=switch", "ports?sys_type=Computer", "ports?sys_type=host", "ports?sys_type=gateway", "ports?sys_type=router", "ports?sys_type=toaster",
		"ports?system=0002c90300000010", "ports?system=0002c90300000001", "ports?system=0002c90300000011", "ports?system=x",
		"ports/0002c90300000011_1", "ports/0002c90300000011_1,0002c90300000021_1", "ports/0002c90300000011_2", "ports/0002c90300000031_1", "ports/0002c90300000001_3", "ports/x", "ports/0002c90300000011",
		"systems", "systems?type=host", "systems?type=switch", "systems?ports=true&type=host", "systems?type=x", "systems/0002c90300000010", "systems/0002c90300000001", "systems/0002c90300000030", "systems/x",
		"links", "links?system=0002c90300000010", "links?system=0002c90300000001", "links?system=0002c90300000099", "links?system=x", "links?page_number=1&rpp=1", "links?page_number=2&rpp=1", "links?page_number=0",
		"vports", "vports?system=0002c90300000010", "vports?system=0002c90300000012", "vports?port=0002c90300000011_1", "vports?port=0002c90300000011_2", "vports?system=0002c90300000010&port=x",
	} {
		seen := map[string][]string{}
		var order []string
		for _, who := range []string{"provider", "red", "blue"} {
			got := r.ask("GET", "/ufmRestV3/resources/"+path, "Basic "+r.secrets[who], "")
			text := fmt.Sprintf("%d %s", got.status, strings.ReplaceAll(strings.TrimSpace(got.body), "},{", "},\n    {"))
			if strings.ContainsAny(path, "?/") && got.status == 200 { // the names are enough
				text = "200"
				for _, m := range named.FindAllStringSubmatch(got.body, -1) {
					text += " " + m[1] + m[2]
				}
			}
			if seen[text] == nil {
				order = append(order, text)
			}
			seen[text] = append(seen[text], who)
		}
		fmt.Fprintln(&out, path)
		for _, text := range order {
			fmt.Fprintf(&out, "  %s: %s\n", strings.Join(seen[text], ", "), text)
		}
	}
	file := filepath.Join("testdata", "inventory.txt")
	if os.Getenv("IBWARDEN_UPDATE") == "1" {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	have, due := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(have), len(due)) {
		if i >= len(have) || i >= len(due) || have[i] != due[i] {
			t.Fatalf("%s:%d: %q, want %q", file, i+1, have[min(i, len(have)-1)], due[min(i, len(due)-1)])
		}
	}
}
