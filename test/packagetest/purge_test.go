package packagetest

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPurgeKeepsTheSecret: ports may hold keys that only the master secret gives. Purging
// copies it for root alone, says where, writes over no copy of another secret and through no
// link, and removes nothing that it could not copy.
func TestPurgeKeepsTheSecret(t *testing.T) {
	const data, backups = "var/lib/ibwarden/", "var/backups/"
	type files map[string]string // text by name; -> begins where a link leads
	for name, x := range map[string]struct {
		before, after files
		says          string
		fails         bool
	}{
		"nothing there":    {before: files{}, after: files{}},
		"no secret yet":    {before: files{data + "state.json": "s"}, after: files{}},
		"an empty secret":  {before: files{data + "secret": ""}, after: files{}},
		"a secret":         {before: files{data + "secret": "a", data + "keys.json": "k", data + "state.json": "s"}, after: files{backups + "ibwarden/secret": "a", backups + "ibwarden/keys.json": "k"}, says: "/var/backups/ibwarden;"},
		"without keys":     {before: files{data + "secret": "a"}, after: files{backups + "ibwarden/secret": "a"}, says: "/var/backups/ibwarden;"},
		"the same again":   {before: files{data + "secret": "a", data + "keys.json": "2", backups + "ibwarden/secret": "a", backups + "ibwarden/keys.json": "1"}, after: files{backups + "ibwarden/secret": "a", backups + "ibwarden/keys.json": "2"}, says: "/var/backups/ibwarden;"},
		"another is there": {before: files{data + "secret": "b", backups + "ibwarden/secret": "a"}, after: files{backups + "ibwarden/secret": "a", backups + "ibwarden.1/secret": "b"}, says: "/var/backups/ibwarden.1;"},
		"links in the way": {before: files{data + "secret": "b", "var/victim": "v", backups + "ibwarden": "->../victim", backups + "ibwarden.1": "->nowhere"}, after: files{"var/victim": "v", backups + "ibwarden": "->../victim", backups + "ibwarden.1": "->nowhere", backups + "ibwarden.2/secret": "b"}, says: "/var/backups/ibwarden.2;"},
		"a link in a copy": {before: files{data + "secret": "a", data + "keys.json": "k", "var/victim": "v", backups + "ibwarden/secret": "a", backups + "ibwarden/keys.json": "->../../victim"}, after: files{"var/victim": "v", backups + "ibwarden/secret": "a", backups + "ibwarden/keys.json": "k"}, says: "/var/backups/ibwarden;"},
		"data are a link":  {before: files{"var/lib/ibwarden": "->../elsewhere", "var/elsewhere/secret": "a"}, after: files{"var/elsewhere/secret": "a"}},
		"no room":          {before: files{data + "secret": "a", "var/backups": "a file"}, after: files{data + "secret": "a", "var/backups": "a file"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for name, text := range x.before {
				path := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if to, link := strings.CutPrefix(text, "->"); link {
					if err := os.Symlink(to, path); err != nil {
						t.Fatal(err)
					}
				} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			c := exec.Command("sh", filepath.Join("..", "..", "packaging", "debian", "postrm"), "purge")
			c.Env = append(os.Environ(), "DPKG_ROOT="+root)
			out, err := c.CombinedOutput()
			if (err != nil) != x.fails || x.says != "" && !strings.Contains(string(out), "a copy is in "+x.says) || x.says == "" && strings.Contains(string(out), "a copy") {
				t.Errorf("%v: %q, want %q", err, out, x.says)
			}
			after := files{}
			err = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				name, _ := filepath.Rel(root, path)
				info, err := e.Info()
				if err != nil {
					return err
				}
				switch {
				case e.Type()&fs.ModeSymlink != 0:
					to, _ := os.Readlink(path)
					after[name] = "->" + to
				case e.Type().IsRegular():
					text, err := os.ReadFile(path)
					if after[name] = string(text); err != nil {
						return err
					}
					if copied := x.before[name] != string(text); copied && info.Mode().Perm() != 0o600 {
						t.Errorf("%s: mode %v", name, info.Mode())
					}
				case x.before[name+"/secret"] == "" && strings.HasPrefix(name, backups+"ibwarden") && info.Mode().Perm() != 0o700:
					t.Errorf("%s: mode %v", name, info.Mode())
				}
				return nil
			})
			if d := cmp.Diff(x.after, after); d != "" || err != nil {
				t.Errorf("%v (-want +got)\n%s", err, d)
			}
		})
	}
}
