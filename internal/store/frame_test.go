package store

import (
	"bytes"
	"testing"
)

// TestFrame: what was sealed is opened by its name; whatever byte of it is changed or cut off,
// or under another name, it is not.
func TestFrame(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("x"), []byte("some bytes")} {
		sealed := SealFrame("name", data)
		if got, err := OpenFrame("name", sealed); err != nil || !bytes.Equal(got, data) || len(sealed) != FrameOverhead+len(data) {
			t.Fatalf("%q: %q, %v", data, got, err)
		}
		if _, err := OpenFrame("other", sealed); err == nil {
			t.Errorf("%q is opened by another name", data)
		}
		for i := range sealed {
			bent := bytes.Clone(sealed)
			bent[i] ^= 1
			if _, err := OpenFrame("name", bent); err == nil {
				t.Errorf("%q: byte %d changed, and it is opened", data, i)
			}
			if _, err := OpenFrame("name", sealed[:i]); err == nil {
				t.Errorf("%q: %d bytes of it are opened", data, i)
			}
		}
	}
	// The name ends somewhere.
	if _, err := OpenFrame("nam", SealFrame("name", []byte("x"))); err == nil {
		t.Error("a part of the name opens it")
	}
	if _, err := OpenFrame("a", append(SealFrame("a\x00b", nil), 'b')); err == nil {
		t.Error("a name with more in it is the same")
	}
}
