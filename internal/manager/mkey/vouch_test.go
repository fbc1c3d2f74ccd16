package mkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"testing"
)

// A proof is of one secret, one pair in one direction, one question and one answer.
func TestVouch(t *testing.T) {
	r := NewRing(secret(1))
	nonce, sum := [16]byte{1}, r.PolicySum([32]byte{2})
	proof := r.Vouch(1, 2, nonce, sum)
	if r.Vouch(1, 2, nonce, sum) != proof {
		t.Error("it is another the second time")
	}
	for name, other := range map[string][24]byte{
		"another secret":      NewRing(secret(2)).Vouch(1, 2, nonce, sum),
		"the other direction": r.Vouch(2, 1, nonce, sum),
		"another sender":      r.Vouch(3, 2, nonce, sum),
		"another receiver":    r.Vouch(1, 3, nonce, sum),
		"another question":    r.Vouch(1, 2, [16]byte{2}, sum),
		"another answer":      r.Vouch(1, 2, nonce, r.PolicySum([32]byte{3})),
		"they change places":  r.Vouch(1, 2, sum, nonce),
	} {
		if other == proof {
			t.Errorf("%s: the same proof", name)
		}
	}
	if sum == [16]byte{2} || sum == NewRing(secret(2)).PolicySum([32]byte{2}) {
		t.Error("the sum is not of the secret")
	}
}

// Two versions have to agree on what managers tell each other. This works it out without
// the package.
func TestVouchStays(t *testing.T) {
	s := secret(7)
	mac := func(parts ...[]byte) []byte {
		m := hmac.New(sha256.New, s[:])
		for _, p := range parts {
			m.Write(p)
		}
		return m.Sum(nil)
	}
	digest := [32]byte{1, 2, 3}
	sum := NewRing(s).PolicySum(digest)
	if want := mac([]byte("ibwarden policy 1"), digest[:]); sum != [16]byte(want) {
		t.Errorf("sum %x, want the first half of %x", sum, want)
	}
	nonce := [16]byte{9}
	want := mac([]byte("ibwarden policy answer 1"), []byte{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2}, nonce[:], sum[:])
	if got := NewRing(s).Vouch(1, 2, nonce, sum); got != [24]byte(want) {
		t.Errorf("proof %x, want the first 24 bytes of %x", got, want)
	}
}
