package telemetry

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWebhookFlags(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "0123456789abcdef\n", 0o600)
	for name, c := range map[string]struct {
		url, secret, want string
	}{
		"no secret":        {"https://h/", "", "needs --webhook-secret-file"},
		"no webhook":       {"", good, "there is no --webhook"},
		"no file":          {"https://h/", filepath.Join(dir, "none"), "no such file"},
		"for all to read":  {"https://h/", file("open", "0123456789abcdef", 0o644), "mode 0644"},
		"short":            {"https://h/", file("short", "0123456789abcde\n", 0o600), "15 octets"},
		"long":             {"https://h/", file("long", strings.Repeat("x", secretMax+1), 0o600), "long"},
		"without TLS":      {"http://192.0.2.1/", good, "want https"},
		"a password in it": {"https://u:hidden@h/", good, "user or password"},
	} {
		f := Flags{webhook: c.url, secret: c.secret}
		s, err := f.openWebhook(io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if s != nil {
			s.Close()
		}
	}
	f := Flags{webhook: "http://127.0.0.1:1/", secret: good}
	s, err := f.openWebhook(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}
