package sa

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestRandomRecords: whatever bits a record has, reserved ones too, it is encoded with them again.
func TestRandomRecords(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for _, c := range codecs {
		raw := make([]byte, c.size)
		for range 200 {
			for i := range raw {
				raw[i] = byte(r.Uint32())
			}
			record := c.make()
			if _, lists := record.(*MultiPathRecord); lists {
				raw[15], raw[16] = 1, 1 // SGIDCount, DGIDCount
			}
			if err := record.UnmarshalBinary(raw); err != nil {
				t.Fatal(err)
			}
			if got, err := record.AppendBinary(nil); err != nil || !bytes.Equal(got, filled(raw)) {
				t.Fatalf("seed %d: %T encoded\n%x (%v), want\n%x", seed, record, got, err, raw)
			}
		}
	}
}

func TestPathRecordTooWide(t *testing.T) {
	for _, bad := range []PathRecord{{PathProperties: PathProperties{SL: 16}}, {PathProperties: PathProperties{FlowLabel: 1 << 20}}, {PathProperties: PathProperties{NumbPath: 128}}} {
		if _, err := bad.AppendBinary(nil); err == nil {
			t.Errorf("%+v was written", bad)
		}
	}
}
