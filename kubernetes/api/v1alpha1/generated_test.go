package v1alpha1

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/ibwarden/ibwarden/test/need"
)

// The methods of the types and the CRDs are as controller-gen makes them of the types.
func TestGenerated(t *testing.T) {
	need.Long(t, "controller-gen is compiled, and loads the packages of the types")
	dir := t.TempDir()
	for _, args := range [][]string{
		{"object", "paths=.", "output:object:dir=" + dir},
		{"crd", "paths=.", "output:crd:dir=" + dir},
	} {
		if out, err := exec.Command("go", append([]string{"tool", "controller-gen"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("controller-gen %v: %v\n%s", args, err, out)
		}
	}
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(made) != 4 {
		t.Fatalf("controller-gen made %v, %v: want four files", made, err)
	}
	kept, err := filepath.Glob("../../config/crd/*")
	if err != nil || len(kept) != 3 {
		t.Errorf("config/crd has %v, %v: want three files", kept, err)
	}
	for _, path := range made {
		here := filepath.Base(path)
		if filepath.Ext(path) == ".yaml" {
			here = filepath.Join("../../config/crd", here)
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(here); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what controller-gen makes (%v): go generate ./api/...", here, err)
		}
	}
}
