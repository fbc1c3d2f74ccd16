package files_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
)

// A state file that was changed by hand, or half written, is refused with the
// place of the fault; what SaveState does not know of stays.
func TestLoadRegistered(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state")
	if _, some, err := files.LoadRegistered(path, 0); err != nil || some {
		t.Errorf("no file: %v, %v", some, err)
	}
	const good = `{"version":1,"lids":{},"pkeys":{},"forgets":{},"administration":{"saved":"2026-01-01T00:00:00Z","salt":"00","sa_key_sum":"",
"groups":[{"mgid":"ff12::1","mlid":49152,"partition":"0x0001","mtu":4,"members":[{"port":"0x0000000000000001","gid":"fe80::1","join_state":1}]}],
"retired_mlids":{"0xc001":"0x0002"},"services":[],"subscriptions":[]}}`
	for _, c := range []struct{ was, is, fault string }{
		{"", "", ""},
		{"ff12::1", "ff12:::1", "groups[0]"},
		{`"mtu":4`, `"mtu":9`, "out of range"},
		{`"0x0000000000000001"`, `"17x"`, "groups[0]"},
		{"0xc001", "0x0001", "retired_mlids"},
		{`"services":[]`, `"services":[{"port":"0x1","record":"00"}]`, "services[0]"},
		{`"services":[]`, `"services":[{"port":"0x1","record":"zz"}]`, "services[0]"},
		{`"subscriptions":[]`, `"subscriptions":[{"port":"0x1","lid":0,"inform":""}]`, "subscriptions[0]"},
		{`"salt":"00"`, `"salt":"0"`, "salt"},
		{`"version":1`, `"version":2`, "version 2"},
	} {
		if err := os.WriteFile(path, []byte(strings.Replace(good, c.was, c.is, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		r, some, err := files.LoadRegistered(path, 0)
		switch {
		case c.fault == "" && (err != nil || !some || len(r.Groups.Groups) != 1 || len(r.Groups.Retired) != 1):
			t.Errorf("a good file: %+v, %v, %v", r, some, err)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%s instead of %s: error %v, want one with %q", c.is, c.was, err, c.fault)
		}
	}
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := files.SaveState(path, desired.Assigned{}); err != nil {
		t.Fatal(err)
	}
	if r, some, err := files.LoadRegistered(path, 0); err != nil || !some || len(r.Groups.Groups) != 1 {
		t.Errorf("after a change of LIDs alone: %+v, %v, %v", r, some, err)
	}
}
