package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestNavRefused(t *testing.T) {
	for _, x := range []struct{ text, says string }{
		{"- {title: A, about: b, pages: [x, x]}\n", "twice"},
		{"- {title: A, about: b, pages: [x]}\n- {title: B, about: b, pages: [x]}\n", "twice"},
		{"- {title: A, about: b, page: [x]}\n", "page"},
		{"- {title: A, pages: [x]}\n", "want title"},
	} {
		file := filepath.Join(t.TempDir(), "nav.yaml")
		if err := os.WriteFile(file, []byte(x.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readNav(file); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%q: %v, want an error about %q", x.text, err, x.says)
		}
	}
}

func TestAnchor(t *testing.T) {
	for title, want := range map[string]string{
		"Who sees what":                         "who-sees-what",
		"`ibwarden why`, `ibwarden show reach`": "ibwarden-why-ibwarden-show-reach",
		"What `--json` prints":                  "what---json-prints",
		"M_Keys: who may write":                 "m_keys-who-may-write",
		"See [this](x.md)":                      "see-this",
	} {
		if got := anchor(title); got != want {
			t.Errorf("%q has the anchor %q, want %q", title, got, want)
		}
	}
}
