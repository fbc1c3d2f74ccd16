package listen_test

import (
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// TestParse: what a server may be called, and that a token is sent in the clear to this machine alone.
func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"unix:/run/ibwarden/ibwarden.sock": "unix:/run/ibwarden/ibwarden.sock",
		"https://fabric.example:8443":      "https://fabric.example:8443",
		"https://fabric.example:8443/":     "https://fabric.example:8443",
		"http://127.0.0.1:8080":            "http://127.0.0.1:8080",
		"http://[::1]:8080":                "http://[::1]:8080",
		"http://fabric.example:8080":       "plain HTTP goes to loopback addresses only",
		"http://127.0.0.1.example:8080":    "plain HTTP goes to loopback addresses only",
		"https://fabric.example:8443/api":  "want unix:PATH",
		"https://fabric.example:8443?a=b":  "want unix:PATH",
		"https://fabric.example:8443#a":    "want unix:PATH",
		"https://me@fabric.example:8443":   "want unix:PATH",
		"ftp://127.0.0.1:8080":             "want unix:PATH",
		"127.0.0.1:8080":                   "want unix:PATH",
		"":                                 "want unix:PATH",
		"https://":                         "want unix:PATH",
		"unix:":                            "socket",
	} {
		s, err := listen.ParseServer(text)
		if got := s.String(); err == nil && got != want || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}
