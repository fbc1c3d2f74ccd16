package look

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/compare"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// The key that a packet between two ports has is one that both can use, and the
// first of the sender's where there is none.
func TestUsualKey(t *testing.T) {
	for _, x := range []struct {
		from, to []ib.PKey
		want     ib.PKey
	}{
		{[]ib.PKey{0x7FFF, 0x8010}, []ib.PKey{0x7FFF, 0x8010}, 0x8010}, // two limited members cannot talk
		{[]ib.PKey{0x7FFF, 0x8010}, []ib.PKey{0xFFFF, 0x8010}, 0x7FFF},
		{[]ib.PKey{0, 0x8010, 0x8011}, []ib.PKey{0x8012}, 0x8010},
		{nil, []ib.PKey{0x8012}, 0xFFFF},
	} {
		b := subnettest.New()
		from, to := b.Host(nil, "from"), b.Host(nil, "to")
		subnettest.SetPKeys(from, x.from...)
		subnettest.SetPKeys(to, x.to...)
		if got := UsualKey(from, to); got != x.want {
			t.Errorf("%v to %v: %v, want %v", x.from, x.to, got, x.want)
		}
	}
}

// What is printed has the packet beside the trace, and steers no terminal.
func TestPrint(t *testing.T) {
	b := subnettest.New()
	from, to := b.Host(nil, "from\x1b[2J"), b.Host(nil, "to")
	key := ib.PKey(0x8010)
	trace := reach.Trace{PKey: &key, Reason: "a reason \u202e", Hops: []reach.Hop{{Name: "leaf\x1b", Checks: []reach.Check{{Rule: "one"}, {Rule: "two"}}}}}
	sent := &compare.Report{Differences: []string{"hop 1 \x1b"}}
	for range gapsShown + 2 {
		sent.Gaps = append(sent.Gaps, compare.Gap{Why: "a gap \u009b2J"})
	}
	show := func(sent *compare.Report) string {
		var out strings.Builder
		if err := PrintTrace(&out, trace, from, to, sent); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	text := show(sent)
	for _, want := range []string{"from?[2J to to", "P_Key 0x8010", "a reason ?", "NOT as computed", "hop 1 ?", "leaf?"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Count(text, "a gap ?2J") != gapsShown || strings.Count(text, "and more") != 1 {
		t.Errorf("want %d gaps and that there are more\n%s", gapsShown, text)
	}
	if strings.ContainsAny(text, "\x1b\u202e\u009b") || strings.Count(text, "leaf") != 1 {
		t.Errorf("%q", text)
	}
	if text := show(nil); strings.Contains(text, "the packet") {
		t.Errorf("no packet was sent\n%s", text)
	}
	sent.Agrees = true
	if text := show(sent); !strings.Contains(text, ", as computed") {
		t.Error(text)
	}
	trace.PKey = nil
	if text := show(nil); !strings.Contains(text, "no P_Key") {
		t.Error(text)
	}
}
