package audit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	docsBegin = "<!-- catalogue: written by TestDocs with IBWARDEN_UPDATE=1 -->\n"
	docsEnd   = "<!-- end of catalogue -->\n"
)

// markdown is the catalogue as docs/audit.md has it.
func markdown() string {
	var b strings.Builder
	b.WriteString("| no | check | what | severity | what is read | what to do |\n|---|---|---|---|---|---|\n")
	for _, e := range Catalogue() {
		if e.Checkable {
			severity := e.Severity.String()
			if e.Profile != Basic {
				severity += ", " + e.Profile.String()
			}
			fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s | %s |\n", e.Number, e.Check, e.Title, severity, e.How, e.Advice)
		}
	}
	b.WriteString("\nNot checkable here:\n\n| no | check | what | severity | why it cannot be checked here |\n|---|---|---|---|---|\n")
	for _, e := range Catalogue() {
		if !e.Checkable {
			fmt.Fprintf(&b, "| %d | `%s` | %s | %s | %s |\n", e.Number, e.Check, e.Title, e.Severity, e.Why)
		}
	}
	return b.String()
}

// The catalogue in the documentation is the one that is run.
func TestDocs(t *testing.T) {
	path := filepath.Join("..", "..", "..", "docs", "audit.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), docsBegin)
	was, after, ok2 := strings.Cut(rest, docsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s: no %q and %q", path, docsBegin, docsEnd)
	}
	if was == markdown() {
		return
	}
	if os.Getenv("IBWARDEN_UPDATE") == "" {
		t.Fatalf("%s does not have the catalogue that is run: go test ./internal/judge/audit -run TestDocs with IBWARDEN_UPDATE=1", path)
	}
	if err := os.WriteFile(path, []byte(before+docsBegin+markdown()+docsEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
