package sa

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestPathRecordTwoWays holds the codec of PathRecord that is written out
// against the one that its layout comes to.
func TestPathRecordTwoWays(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var raw [PathRecordSize]byte
	for range 2000 {
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		var a, b PathRecord
		if err := a.UnmarshalBinary(raw[:]); err != nil {
			t.Fatal(err)
		}
		if err := decode(&b, PathRecordSize, raw[:]); err != nil {
			t.Fatal(err)
		}
		if a != b {
			t.Fatalf("% x: read %+v, its layout %+v", raw, a, b)
		}
		x, err := a.AppendBinary(nil)
		if err != nil {
			t.Fatal(err)
		}
		y, err := encode(&a, PathRecordSize, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(x, raw[:]) || !bytes.Equal(y, x) {
			t.Fatalf("written % x, by layout % x, want % x", x, y, raw)
		}
	}
	for _, bad := range []PathRecord{{PathProperties: PathProperties{SL: 16}}, {PathProperties: PathProperties{FlowLabel: 1 << 20}}, {PathProperties: PathProperties{NumbPath: 128}}} {
		if _, err := bad.AppendBinary(nil); err == nil {
			t.Errorf("%+v was written", bad)
		}
	}
}
