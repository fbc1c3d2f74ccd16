package isolation

import "testing"

// TestVerdictReadsBack: what the history keeps of a verdict can be read back.
func TestVerdictReadsBack(t *testing.T) {
	for v := Isolated; v <= Violated; v++ {
		text, err := v.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var back Verdict
		if err := back.UnmarshalText(text); err != nil || back != v {
			t.Errorf("%s reads back as %v, %v", text, back, err)
		}
	}
	var v Verdict
	for _, text := range []string{"", "Isolated", "proved"} {
		if v.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q was read as %v", text, v)
		}
	}
}
