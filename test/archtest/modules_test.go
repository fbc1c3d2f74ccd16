package archtest

import (
	"os"
	"strings"
	"testing"
)

// What the modules of their own need stays out of the manager's: whoever builds ibwarden
// fetches nothing of Kubernetes.
func TestModulesOfTheirOwn(t *testing.T) {
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			if module := strings.TrimSpace(line); strings.HasPrefix(module, "k8s.io/") || strings.HasPrefix(module, "sigs.k8s.io/") {
				t.Errorf("%s has %s, which is for kubernetes/go.mod", name, strings.Fields(module)[0])
			}
		}
	}
	// The controller is tested on the API server of the version that it is built for.
	for _, name := range []string{"../../kubernetes/go.mod", "../../kubernetes/test/apiserver/go.mod"} {
		if data, err := os.ReadFile(name); err != nil || !strings.Contains(string(data), "\tk8s.io/apimachinery v0.37.2") {
			t.Errorf("%s: %v: want k8s.io/apimachinery v0.37.2: both files have to have the same, and docs/kubernetes.md says which", name, err)
		}
	}
	own, err := os.ReadFile("../../kubernetes/go.mod")
	if err != nil || !strings.Contains(string(own), "\nreplace "+strings.TrimSuffix(module, "/")+" => ../\n") {
		t.Errorf("kubernetes/go.mod: %v: want it to take the manager from the directory above", err)
	}
}
