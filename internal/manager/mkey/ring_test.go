package mkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
)

func secret(b byte) (s [SecretSize]byte) {
	for i := range s {
		s[i] = b + byte(i)
	}
	return s
}

// Every value that goes in changes the key that comes out, and the kinds of keys
// have nothing in common.
func TestKeysDiffer(t *testing.T) {
	seen := map[uint64]string{}
	note := func(key uint64, format string, args ...any) {
		t.Helper()
		what := fmt.Sprintf(format, args...)
		if key == 0 || seen[key] != "" {
			t.Errorf("%s: key %#x, also that of %q", what, key, seen[key])
		}
		seen[key] = what
	}
	for s := range byte(2) {
		r := NewRing(secret(s))
		note(uint64(r.SAKey()), "SA_Key, secret %d", s)
		for a := range uint64(12) {
			for b := range uint64(12) {
				note(uint64(r.SMKey(ib.PortGUID(a), ib.PortGUID(b))), "SM_Key %d to %d, secret %d", a, b, s)
				for g := range Generation(6) {
					id := ID{ib.NodeGUID(a), ib.PortGUID(b)}
					note(uint64(r.MKey(id, g)), "M_Key of %v generation %d, secret %d", id, g, s)
					if r.MKey(id, g) != NewRing(secret(s)).MKey(id, g) {
						t.Errorf("M_Key of %v is another the second time", id)
					}
				}
			}
		}
	}
}

// The keys are part of what is kept from run to run: another way to make them
// locks every fabric away. This works them out without the package.
func TestKeysStay(t *testing.T) {
	s := secret(7)
	mac := hmac.New(sha256.New, s[:])
	mac.Write([]byte("ibwarden M_Key 1"))
	mac.Write([]byte{0, 2, 0xc9, 0, 0, 0, 0, 1, 0, 2, 0xc9, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3})
	want := ib.MKey(binary.BigEndian.Uint64(mac.Sum(nil)))
	if got := NewRing(s).MKey(ID{0x0002c90000000001, 0x0002c90000000002}, 3); got != want {
		t.Errorf("M_Key %v, want %v", got, want)
	}
}

// Whatever a ring is printed with, the secret does not show.
func TestRingIsSilent(t *testing.T) {
	r := NewRing(secret('a'))
	for _, text := range []string{fmt.Sprint(r), fmt.Sprintf("%v %+v %#v %s %q", r, r, r, r, r)} {
		if strings.Contains(text, "abc") || strings.Contains(text, "0x61") || strings.Contains(text, "97 98") {
			t.Errorf("prints %q", text)
		}
	}
}
