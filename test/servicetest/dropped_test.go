package servicetest

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/packet"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

// TestDroppedAtTheExit: a packet in a partition of its sender, to a host that is no member of it, passes
// the entry and is dropped at the exit, which no trap reports and no violation counts (SW-23). The
// manager reads the counter of the exit, and logs the packet.
func TestDroppedAtTheExit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "examples", "tenants.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte("services:"), []byte("  - {name: counters, pkey: 0x0050, members: {full: [SELF], limited: [ALL_SWITCHES]}}\nservices:"), 1)
	p, err := policyfile.ReadYAML(text, "counters.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, p, nil)
	storage, blue := s.node("storage-1"), s.node("blue-1")
	b, v, err := packet.Append(nil, packet.MakeOpCode(packet.UD, packet.SendOnly), false, make([]byte, 64))
	if err != nil {
		t.Fatal(err)
	}
	v.LRH.SetSLID(s.lid(storage.GUID))
	v.LRH.SetDLID(s.lid(blue.GUID))
	v.BTH.SetPKey(0x8030) // storage/red
	v.BTH.SetDestQP(5)
	if err := packet.Seal(b); err != nil {
		t.Fatal(err)
	}
	if err := s.fabric.Inject(storage.GUID, 1, b); err != nil {
		t.Fatal(err)
	}
	s.settle()
	var told []string
	for _, e := range s.events {
		if d, is := e.(perfmgr.Dropped); is {
			told = append(told, d.String())
		}
	}
	if len(told) != 1 || told[0] != "leaf-3:3: dropped 1 packet at the exit, by partition enforcement or a raw filter (PortXmitConstraintErrors)" {
		t.Errorf("told %q", told)
	}
}

func (s *site) lid(g ib.NodeGUID) ib.LID { return s.fabric.Agent(g).Port(1).LID }
