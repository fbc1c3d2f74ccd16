package servicecmd

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// TestConsole: the address that is printed logs in, once, as whoever asked.
func TestConsole(t *testing.T) {
	server, url := servingOn(t, "127.0.0.1:0")
	if _, err := run(t, server, "tenant create red"); err != nil {
		t.Fatal(err)
	}
	printed := regexp.MustCompile(`^(http://127\.0\.0\.1:[0-9]+)/console/#code=(ibwc_[A-Za-z0-9_-]{43})\n$`)
	login := func(code string) (status int, made listen.NewSession) {
		r, _ := http.NewRequest("POST", url+"/api/v1/session", nil)
		r.Header.Set("Authorization", "Bearer "+code)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusCreated {
			if err := json.NewDecoder(answer.Body).Decode(&made); err != nil {
				t.Fatal(err)
			}
		}
		return answer.StatusCode, made
	}
	red := token(t, server, "red")
	for _, x := range []struct{ server, flags, tenant string }{
		{server, "", "provider"}, {server, " --token-file " + red, "red"}, {url, " --token-file " + red, "red"},
	} {
		text, err := run(t, x.server, "console"+x.flags)
		parts := printed.FindStringSubmatch(text)
		if err != nil || parts == nil || parts[1] != url {
			t.Fatalf("%q, %v: want an address at %s", text, err, url)
		}
		if status, made := login(parts[2]); status != http.StatusCreated || made.Tenant != x.tenant || made.Secret == "" {
			t.Errorf("%d %+v: want a session of %s", status, made, x.tenant)
		}
		if status, _ := login(parts[2]); status != http.StatusUnauthorized {
			t.Errorf("the code is good twice: %d", status)
		}
	}
	if text, err := run(t, serving(t), "console"); err == nil || !strings.Contains(err.Error(), "--listen 127.0.0.1:8443") || text != "" {
		t.Errorf("%q, %v: want the flag that is missing", text, err)
	}
}
