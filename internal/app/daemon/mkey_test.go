package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
)

func TestLoadMKey(t *testing.T) {
	for _, c := range []struct {
		text  string
		mode  os.FileMode
		want  ib.MKey
		fault string
	}{
		{"0x1122334455667788\n", 0o600, 0x1122334455667788, ""},
		{"18446744073709551615", 0o400, ib.MKey(^uint64(0)), ""},
		{"0x1122334455667788", 0o640, 0, "mode 0640"},
		{"0x1122334455667788", 0o604, 0, "mode 0604"},
		{"0", 0o600, 0, "1 to 2^64-1"},
		{"", 0o600, 0, "1 to 2^64-1"},
		{"0x11223344556677889", 0o600, 0, "1 to 2^64-1"},
		{"12 34", 0o600, 0, "1 to 2^64-1"},
	} {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil {
			t.Fatal(err)
		}
		got, err := daemon.LoadMKey(path)
		switch {
		case c.fault == "" && (err != nil || got != c.want):
			t.Errorf("%q, mode %04o: %v, %v; want %v", c.text, c.mode, got, err, c.want)
		case c.fault != "" && (err == nil || !strings.Contains(err.Error(), c.fault)):
			t.Errorf("%q, mode %04o: error %v, want one with %q", c.text, c.mode, err, c.fault)
		case c.fault != "" && len(c.text) > 2 && strings.Contains(err.Error(), c.text[:4]):
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if _, err := daemon.LoadMKey(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there has a key")
	}
}
