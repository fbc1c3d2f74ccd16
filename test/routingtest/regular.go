package routingtest

import (
	"math/rand/v2"

	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// Regular is a random graph whose switches all have as many links, but for a few, and as
// many CAs.
func (b *Builder) Regular(rng *rand.Rand, switches, links, hosts int) {
	var all, stubs []*observed.Node
	for i := range switches {
		s := b.Switch(links+hosts, "switch %d", i)
		b.Hosts(s, hosts)
		all = append(all, s)
	}
	for _, s := range all {
		for range links {
			stubs = append(stubs, s)
		}
	}
	rng.Shuffle(len(stubs), func(i, j int) { stubs[i], stubs[j] = stubs[j], stubs[i] })
	for i := 0; i+1 < len(stubs); i += 2 {
		if stubs[i] != stubs[i+1] {
			subnettest.Join(stubs[i], stubs[i+1])
		}
	}
}
