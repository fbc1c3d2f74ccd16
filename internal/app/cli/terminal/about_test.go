package terminal

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestAboutPrint(t *testing.T) {
	for _, c := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, "ibwarden (devel), go"},
		{&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}}, "ibwarden v1.2.3, go"},
		{&debug.BuildInfo{Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-11-21T17:00:00Z"}, {Key: "vcs.modified", Value: "true"},
		}}, "ibwarden (devel), commit abc of 2026-11-21T17:00:00Z with changes, go"},
		{&debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.modified", Value: "false"}}}, "ibwarden (devel), commit abc, go"},
	} {
		var b strings.Builder
		if err := of(c.info).Print(&b); err != nil || !strings.HasPrefix(b.String(), c.want) || strings.Count(b.String(), "\n") != 1 {
			t.Errorf("%q (%v), want %q first", b.String(), err, c.want)
		}
	}
}
