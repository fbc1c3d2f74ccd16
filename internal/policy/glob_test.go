package policy

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestGlob(t *testing.T) {
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"red-*", "red-1", true},
		{"red-*", "red-", true},
		{"red-*", "xred-1", false},
		{"*", "", true},
		{"?", "", false},
		{"?", "ü", true},
		{"n?de*HCA-[12]", "node 7 HCA-2", true},
		{"n?de*HCA-[12]", "node 7 HCA-3", false},
		{"[!a-c]x", "dx", true},
		{"[!a-c]x", "bx", false},
		{"[a-]x", "-x", true},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{"*a*b*c*", "xxaxxbxxc", true},
		{"*a*b*c*", "xxaxxcxxb", false},
		{"a", "ab", false},
	}
	for _, tt := range tests {
		g, err := compileGlob(tt.pattern)
		if err != nil {
			t.Fatalf("%q: %v", tt.pattern, err)
		}
		if got := g.match(tt.s); got != tt.want {
			t.Errorf("%q matches %q: %v, want %v", tt.pattern, tt.s, got, tt.want)
		}
	}
	for _, bad := range []string{"[", "[]", "[!]", "a[b", `a\`, "[z-a]"} {
		if CheckPattern(bad) == nil {
			t.Errorf("%q was taken for a pattern", bad)
		}
	}
}

// The judge is package regexp.
func TestGlobAgreesWithRegexp(t *testing.T) {
	translate := strings.NewReplacer("*", ".*", "?", ".", "[!", "[^")
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ä", "*", "?", "[ab]", "[!a]", "[a-c]"}), 0, 8).Draw(t, "pattern")
		s := rapid.StringOfN(rapid.SampledFrom([]rune("abcä")), 0, 10, -1).Draw(t, "s")
		pattern := strings.Join(parts, "")
		g, err := compileGlob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		want := regexp.MustCompile(`(?s)^` + translate.Replace(pattern) + `$`).MatchString(s)
		if got := g.match(s); got != want {
			t.Fatalf("%q matches %q: %v, want %v", pattern, s, got, want)
		}
		if want && !strings.HasPrefix(s, g.prefix) {
			t.Fatalf("%q matches %q without its prefix %q", pattern, s, g.prefix)
		}
	})
}

// A pattern made to backtrack takes no time worth speaking of.
func TestGlobBacktracking(t *testing.T) {
	g, err := compileGlob(strings.Repeat("*a", 30) + "b")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	if g.match(strings.Repeat("a", 10_000)) {
		t.Error("matched")
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("red-*[a-z]?", "red-7")
	f.Add(`\[[!`, "\xff")
	f.Fuzz(func(t *testing.T, pattern, s string) {
		g, err := compileGlob(pattern)
		if (err == nil) != (CheckPattern(pattern) == nil) {
			t.Fatalf("%q: %v", pattern, err)
		}
		if err == nil {
			g.match(s)
		}
	})
}
