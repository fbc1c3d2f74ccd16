package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Tests that run ibwarden on an adapter, a simulated one too, say where it keeps what
// it may not forget: for root that is this machine's own directory, and its manager's.
func TestTestsKeepToTheirOwnData(t *testing.T) {
	root := filepath.Join("..", "..")
	runs, says := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if filepath.Ext(path) == ".txtar" {
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte("--fabric umad")) && !bytes.Contains(text, []byte("IBWARDEN_DATA=")) {
				t.Errorf("%s runs ibwarden --fabric umad without IBWARDEN_DATA: as root it writes into /var/lib/ibwarden of this machine", path)
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if pkg := filepath.Dir(path); filepath.Base(path) != "data_test.go" || filepath.Base(pkg) != "archtest" {
			runs[pkg] = runs[pkg] || bytes.Contains(text, []byte(`"--fabric", "umad`))
			// ibsimtest.Tame says it, and ibsimtest.Command with it.
			says[pkg] = says[pkg] || bytes.Contains(text, []byte(`"IBWARDEN_DATA=`)) || bytes.Contains(text, []byte("ibsimtest.Tame(")) || bytes.Contains(text, []byte("ibsimtest.Command("))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for pkg, does := range runs {
		if !does {
			continue
		}
		if count++; !says[pkg] {
			t.Errorf("%s runs ibwarden --fabric umad without IBWARDEN_DATA: as root it writes into /var/lib/ibwarden of this machine", pkg)
		}
	}
	if count < 2 {
		t.Errorf("%d packages run ibwarden on an adapter: looking for the wrong words", count)
	}
}
