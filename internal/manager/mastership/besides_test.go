package mastership

import (
	"crypto/sha256"
	"fmt"
	"testing"
)

// TestBesides: the sum has every field, no two of which can be taken for each other, and its
// form is that of policyModifier.
func TestBesides(t *testing.T) {
	seen := map[[sha256.Size]byte]Besides{}
	for _, b := range []Besides{
		{}, {Profile: "a"}, {Routing: "a"}, {LMC: 1}, {GIDPrefix: 1}, {GIDPrefix: 1 << 56}, {Profile: "ab", Routing: "c"}, {Profile: "a", Routing: "bc"},
	} {
		sum := b.sum([sha256.Size]byte{1})
		if other, double := seen[sum]; double {
			t.Errorf("%+v and %+v have one sum", b, other)
		}
		seen[sum] = b
		if sum == b.sum([sha256.Size]byte{2}) {
			t.Errorf("%+v: the policy does not count", b)
		}
	}
	b := Besides{Profile: "tenant", Routing: "updn", LMC: 2, GIDPrefix: 0xFE80000000000000}
	const want = "bef674d7ec6bb4818fc35140b3af81c337be12bd58e85c96cab2f70d73667fbc"
	if got := fmt.Sprintf("%x", b.sum([sha256.Size]byte{1})); got != want || policyModifier != 0x49425751 {
		t.Errorf("%s for modifier %#x, want %s: another encoding has another modifier", got, policyModifier, want)
	}
}
