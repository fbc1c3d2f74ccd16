package need

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// OpenIDProvider is an OpenID provider that runs: that of test/openidprovider.
type OpenIDProvider struct {
	testing.TB
	Issuer, Client, Secret string

	program, people, console string
	cmd                      *exec.Cmd
	log                      *Log
}

// OpenIDPerson is somebody who may log in there.
type OpenIDPerson struct {
	Name     string   `json:"name"`
	Password string   `json:"password"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
}

// StartOpenIDProvider starts one for a console at a URL, and ends it with the test.
func StartOpenIDProvider(t testing.TB, console string, people ...OpenIDPerson) *OpenIDProvider {
	t.Helper()
	dir := t.TempDir()
	p := &OpenIDProvider{TB: t, Client: "ibwarden", Secret: "of the tests", program: filepath.Join(dir, "provider"), people: filepath.Join(dir, "people.json"), console: console}
	module, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-C", filepath.Join(filepath.Dir(strings.TrimSpace(string(module))), "test", "openidprovider"), "-o", p.program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		Need(t, fmt.Errorf("test/openidprovider cannot be built: %w: %s", err, out)) // its modules may not be here
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Issuer = "http://" + l.Addr().String()
	l.Close()
	p.Set(people...)
	p.Start()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("the OpenID provider wrote:\n%s", p.log)
		}
	})
	return p
}

// Set says who there is from now on.
func (p *OpenIDProvider) Set(people ...OpenIDPerson) {
	p.Helper()
	text, err := json.Marshal(people)
	if err == nil {
		err = os.WriteFile(p.people+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(p.people+".new", p.people)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// Start starts the process, and waits until it answers. It knows nobody of before.
func (p *OpenIDProvider) Start() {
	p.Helper()
	p.log = &Log{}
	p.cmd = exec.Command(p.program, strings.TrimPrefix(p.Issuer, "http://"), p.Client, p.Secret, p.console, p.people)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		p.Fatal(err)
	}
	Eventually(p, Patience, "the OpenID provider answers", func() bool {
		answer, err := http.Get(p.Issuer + "/.well-known/openid-configuration")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	})
}

// Stop ends the process.
func (p *OpenIDProvider) Stop() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // killed
}
