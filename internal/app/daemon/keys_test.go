package daemon_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
)

func newDir(t *testing.T) daemon.DataDir {
	t.Helper()
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	dir, err := daemon.OpenDataDir(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func openKeys(t *testing.T, dir daemon.DataDir, file string) *daemon.Keyring {
	t.Helper()
	k, err := daemon.OpenKeys(dir, file, true)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// The secret is made once, for its owner only, and what is kept comes back.
func TestKeysStay(t *testing.T) {
	dir := newDir(t)
	if _, err := daemon.OpenKeys(dir, "", false); !errors.Is(err, daemon.ErrNoSecret) {
		t.Errorf("without a secret, and not to make one: %v", err)
	}
	k := openKeys(t, dir, "")
	id, at := mkey.ID{Node: 1, Port: 2}, observed.Place{Node: 3, Port: 4}
	if _, err := k.Book.Add(id, at); err != nil {
		t.Fatal(err)
	}
	if err := k.Save(k.Book); err != nil {
		t.Fatal(err)
	}
	again := openKeys(t, dir, "")
	if again.Book.Find(id, at) == nil || again.Ring.MKey(id, 1) != k.Ring.MKey(id, 1) {
		t.Error("not as it was")
	}
	for _, name := range []string{"secret", "keys.json"} {
		if i, err := os.Stat(dir.File(name)); err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, i, err)
		}
	}
	if err := os.Remove(dir.File("secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.OpenKeys(dir, "", true); !errors.Is(err, daemon.ErrNoSecret) {
		t.Errorf("the secret was lost: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(strings.Repeat("ab", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.OpenKeys(dir, other, true); err == nil || !strings.Contains(err.Error(), "another master secret") {
		t.Errorf("another secret: %v", err)
	}
}

// systemd's credential goes before the file in the directory, and a file that was
// named before both.
func TestWhereTheSecretIs(t *testing.T) {
	id := mkey.ID{Node: 1, Port: 2}
	given := t.TempDir()
	write := func(path, digits string, mode os.FileMode) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(digits+"\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(filepath.Join(given, "ibwarden.secret"), strings.Repeat("cd", 32), 0o440)
	named := write(filepath.Join(t.TempDir(), "s"), strings.Repeat("ef", 32), 0o600)
	dir := newDir(t)
	own := openKeys(t, dir, "").Ring.MKey(id, 1)
	t.Setenv("CREDENTIALS_DIRECTORY", given)
	credential, flag := openKeys(t, dir, "").Ring.MKey(id, 1), openKeys(t, dir, named).Ring.MKey(id, 1)
	if own == credential || own == flag || credential == flag {
		t.Errorf("keys %v, %v, %v", own, credential, flag)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", "")
	if openKeys(t, dir, "").Ring.MKey(id, 1) != own {
		t.Error("another secret was made")
	}
	for text, mode := range map[string]os.FileMode{
		strings.Repeat("ab", 31): 0o600, strings.Repeat("ab", 33): 0o600, strings.Repeat("x", 64): 0o600, "": 0o600,
		strings.Repeat("ab", 32): 0o640,
	} {
		path := filepath.Join(t.TempDir(), "bad")
		write(path, text, mode)
		_, err := daemon.OpenKeys(newDir(t), path, true)
		if err == nil || len(text) > 0 && strings.Contains(err.Error(), text) {
			t.Errorf("%d characters, mode %o: %v", len(text), mode, err)
		}
	}
	link := filepath.Join(t.TempDir(), "fifo")
	if err := os.Mkdir(link, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := daemon.OpenKeys(newDir(t), link, true); err == nil {
		t.Error("a directory is taken for a secret")
	}
}

// One manager at a time runs on a directory, and a request for other keys waits for
// the next one.
func TestRequestForKeys(t *testing.T) {
	dir := newDir(t)
	k := openKeys(t, dir, "")
	unlock, err := dir.Lock()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Lock(); !errors.Is(err, daemon.ErrInUse) {
		t.Errorf("a second manager: %v", err)
	}
	unlock()
	if r, err := k.AskedRotation(); r != nil || err != nil {
		t.Errorf("nobody has asked: %v, %v", r, err)
	}
	for _, ports := range [][]ib.PortGUID{{0x10, 0xFEDCBA9876543210}, nil} {
		if awake, err := dir.AskRotation(daemon.Rotation{Ports: ports}); awake || err != nil {
			t.Fatalf("awake %v, %v", awake, err)
		}
		r, err := k.AskedRotation()
		if err != nil || !slices.Equal(r.Ports, ports) {
			t.Errorf("asked for %v: %+v, %v", ports, r, err)
		}
	}
	if err := k.Rotated(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(dir.File("rotate.json"), []byte(`{"port_guids":["x"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := k.AskedRotation(); err == nil {
		t.Error("a request that makes no sense is taken")
	}
}

// Keys of another manager are read, kept, and forgotten.
func TestForeignKeys(t *testing.T) {
	dir := newDir(t)
	keys, cabling := filepath.Join(t.TempDir(), "k"), filepath.Join(t.TempDir(), "n")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(keys, "0x0000000000000010 0x00000000000000aa\n\n0x0000000000000020 0xbb\n\n0x30 0x0\n")
	write(cabling, "0x0000000000000020:3 0x0000000000000010:1\n\n")
	n, err := dir.ImportForeign(keys, cabling)
	if n != 2 || err != nil {
		t.Fatalf("%d keys, %v", n, err)
	}
	k := openKeys(t, dir, "")
	if k.Foreign.Of[0x10] != 0xaa || k.Foreign.Of[0x20] != 0xbb || len(k.Foreign.Of) != 2 ||
		k.Foreign.Neighbor[mkey.PortOf{GUID: 0x20, Port: 3}] != 0x10 || k.Foreign.Neighbor[mkey.PortOf{GUID: 0x10, Port: 1}] != 0x20 {
		t.Errorf("%+v", k.Foreign)
	}
	if err := k.DropForeign(); err != nil || openKeys(t, dir, "").Foreign.Any() {
		t.Errorf("not forgotten: %v", err)
	}
	for _, bad := range []string{"0x10\n", "0x10 x1234\n", "zz 0x10\n", "0x1 0x2 0x3\n"} {
		write(keys, bad)
		if _, err := dir.ImportForeign(keys, ""); err == nil || strings.Contains(err.Error(), "1234") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
