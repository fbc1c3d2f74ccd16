package snapshot

import (
	"bytes"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// What stands for keys tells which are equal, which are none, which are GUIDs and
// which can be guessed, and nothing else.
func TestConceal(t *testing.T) {
	keys := []ib.MKey{0, 1, 0x12345678, 0x1111111122222222, 0xDEADBEEFCAFE0123, 0xDEADBEEFCAFE0123, 0x0807060504030201, 9}
	make := func() *Snapshot {
		f := observed.NewFabric()
		for i, key := range keys {
			n := f.AddNode(smp.NodeInfo{NodeType: ib.NodeCA, NumPorts: 1, NodeGUID: ib.NodeGUID(i + 2)})
			n.Ports[1].GUID, n.Ports[1].Key = ib.PortGUID(i+100), key
			n.Ports[1].Info.MKey, n.Ports[1].SMInfo.SMKey = key, ib.SMKey(key)
		}
		return &Snapshot{Fabric: f}
	}
	a, b := make(), make()
	a.Conceal([32]byte{1})
	b.Conceal([32]byte{2})
	shown := map[ib.MKey]int{}
	for i, n := range a.Fabric.Nodes {
		p, key := &n.Ports[1], keys[i]
		got := p.Info.MKey
		shown[got]++
		isGUID := uint64(key) == uint64(n.GUID())
		switch {
		case p.Key != 0:
			t.Errorf("key %v is still there for requests", key)
		case (got == 0) != (key == 0):
			t.Errorf("key %v became %v", key, got)
		case key != 0 && (got == key) != isGUID:
			t.Errorf("key %v became %v", key, got)
		case key != 0 && canBeGuessed(uint64(got)) != canBeGuessed(uint64(key)):
			t.Errorf("key %v became %v, which is as hard to guess as another", key, got)
		case key != 0 && !isGUID && got == b.Fabric.Nodes[i].Ports[1].Info.MKey:
			t.Errorf("key %v became %v with either salt", key, got)
		case key != 0 && key != defaultKey && !isGUID && uint64(p.SMInfo.SMKey) != uint64(got):
			t.Errorf("key %v became %v, and as an SM_Key %v", key, got, p.SMInfo.SMKey)
		case key == defaultKey && p.SMInfo.SMKey != defaultKey:
			t.Errorf("the SM_Key that everybody has became %v", p.SMInfo.SMKey)
		}
	}
	if len(shown) != len(keys)-1 {
		t.Errorf("%d different keys became %d", len(keys)-1, len(shown))
	}
	var file bytes.Buffer
	if err := Write(&file, a); err != nil {
		t.Fatal(err)
	}
	back, err := Read(&file)
	if err != nil || !back.Concealed {
		t.Errorf("read back: %v", err)
	}
}
