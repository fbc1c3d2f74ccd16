package cli

import (
	"slices"
	"testing"
)

// The list is as Linux prints it: ibsim's names end with a zero byte, which is shown
// as @.
func TestSimulators(t *testing.T) {
	const list = `Num       RefCount Protocol Flags    Type St Inode Path
ffff8881: 00000002 00000000 00000000 0002 01 4711 @demo:ctl@
ffff8882: 00000002 00000000 00000000 0002 01 4712 @demo:out0@
ffff8883: 00000002 00000000 00000000 0002 01 4713 @a b:ctl
ffff8889: 00000002 00000000 00000000 0002 01 4719 @$(reboot):ctl@
ffff8884: 00000003 00000000 00010000 0001 01 4714 /run/x:ctl
ffff8885: 00000003 00000000 00000000 0001 03 4715
ffff8886: 00000002 00000000 00000000 0002 01 4716 @:ctl@
ffff8887: 00000002 00000000 00000000 0002 01 4717 @demo:ctl@
ffff8888: 00000002 00000000 00000000 0002 01 4718 @` + "\x1b[31m" + `:ctl@
`
	if got := simulators(list); !slices.Equal(got, []string{"demo"}) {
		t.Errorf("%q", got)
	}
}

// What devices are called goes to a shell that would carry it out.
func TestOffer(t *testing.T) {
	for _, word := range []string{"", "red\x1b[31m", "$(reboot)", "`reboot`", "a;b", "a b", "a\tb", "*", "~root", "a\\nb", "'", "é"} {
		if w, ok := offer(word, "x"); ok {
			t.Errorf("%q is proposed as %q", word, w)
		}
	}
	for word, about := range map[string]string{"leaf-1:3": "to red-1 HCA-1", "0x0000000000100003": "$(reboot) `x`\n"} {
		w, ok := offer(word, about)
		if want := word + "\t" + map[string]string{"leaf-1:3": "to red-1 HCA-1", "0x0000000000100003": "__reboot_ _x__"}[word]; !ok || w != want {
			t.Errorf("%q, %v, want %q", w, ok, want)
		}
	}
}
