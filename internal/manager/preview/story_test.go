package preview

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/lab/golden"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// What is shown of random changes, in words and in values, is what was shown when the file below
// testdata was written.
func TestPreviewInWords(t *testing.T) {
	var s golden.Story
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 30))
		table := func() (out []ib.PKey) {
			for base := ib.PKeyBase(1); base <= 4; base++ {
				switch r.IntN(4) {
				case 0:
					out = append(out, base.Full())
				case 1:
					out = append(out, base.Limited())
				}
			}
			if r.IntN(3) == 0 {
				out = append([]ib.PKey{ib.PKeyDefaultFull}, out...)
			}
			return append(out, make([]ib.PKey, r.IntN(2))...)
		}
		var now, after [][]ib.PKey
		for range 2 + r.IntN(6) {
			keys := table()
			now = append(now, keys)
			if r.IntN(3) > 0 {
				keys = table()
			}
			after = append(after, keys)
		}
		f, d := hub(now, after)
		in := Input{Fabric: f, Desired: d}
		var guids []ib.PortGUID
		for _, p := range f.EndPorts() {
			guids = append(guids, p.GUID)
			if p.Peer == nil {
				continue
			}
			if r.IntN(3) == 0 {
				d.Port(p.Peer).PKeys = table()
			}
			if r.IntN(4) == 0 {
				p.PKeysRead = nil
			}
			if r.IntN(8) == 0 {
				p.Info.PortState, p.Peer.Info.PortState = smp.PortDown, smp.PortDown
			}
			if r.IntN(6) == 0 {
				p.Node.Contested = true
			}
		}
		for base := ib.PKeyBase(1); base <= 4; base++ {
			in.Partitions = append(in.Partitions, observed.Partition{Name: fmt.Sprint("p", base), Base: base, Full: guids[:r.IntN(len(guids))], Limited: guids[r.IntN(len(guids)):]})
		}
		if r.IntN(2) == 0 {
			half := r.IntN(len(guids))
			in.Groups = []Set{{Name: "first", Ports: guids[:half]}, {Name: "second", Ports: guids[half:]}, {Name: "all", Ports: guids}}
		}
		in.Plan = plan.Diff(f, d)
		p, err := Look(in)
		text := fmt.Sprint(err)
		if err == nil {
			var b strings.Builder
			if err := p.Print(&b); err != nil {
				t.Fatal(err)
			}
			values, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			text = fmt.Sprintf("%s\n%s", b.String(), values)
		}
		s.Add(fmt.Sprint("change ", seed), text)
	}
	s.Check(t, "words.txt")
}
