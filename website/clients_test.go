package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/oapi-codegen/runtime" // generated code imports it

	"github.com/ibwarden/ibwarden/test/need"
)

const (
	description = "../docs/openapi.json"
	// patience is how long the service may take to say where it is.
	patience = 30 * time.Second
)

// want is what both programs print: each step of a change, and the problems by their type.
const want = `tenant green 0x0100 2
201 partition 0x0100 "training" is made for tenant green
201 repeated true true
port 0x000000000010001d of tenant green is a full member of 0x0100 "training"
outcome proved isolated
problem 403 forbidden pkey
problem 409 repeat header.Idempotency-Key
problem 412 stale header.If-Match
`

// run runs a program and returns what it prints on standard output.
func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "npm_config_update_notifier=false")
	var errors strings.Builder
	c.Stderr = &errors
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, errors.String())
	}
	return string(out)
}

// serve runs a service with a tenant that has two ports, and returns its address and a token.
func serve(t *testing.T) (address, token string) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "ibwarden")
	run(t, "..", "go", "build", "-o", program, "./cmd/ibwarden")
	socket := "unix:" + filepath.Join(dir, "s")
	service := exec.Command(program, "run", "--fabric", "sim", "--data", filepath.Join(dir, "data"), "--socket", filepath.Join(dir, "s"), "--listen", "127.0.0.1:0")
	service.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	said := &need.Log{}
	service.Stdout, service.Stderr = said, said
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		service.Process.Signal(syscall.SIGTERM)
		service.Wait()
	})
	at := regexp.MustCompile(`API: (http://127\.0\.0\.1:\d+)`)
	for late := time.Now().Add(patience); address == ""; time.Sleep(20 * time.Millisecond) {
		if m := at.FindStringSubmatch(said.String()); m != nil {
			address = m[1]
		} else if time.Now().After(late) {
			t.Fatalf("the service does not say where it is:\n%s", said)
		}
	}
	run(t, dir, program, "tenant", "create", "green", "--keys", "0x100-0x1ff", "--wait", "--server", socket)
	run(t, dir, program, "port", "assign", "--yes", "--tenant", "green", "0x10001d", "0x10001f", "--wait", "--server", socket)
	return address, strings.TrimSpace(run(t, dir, program, "tenant", "token", "create", "--tenant", "green", "--server", socket))
}

func check(t *testing.T, got string) {
	t.Helper()
	if got != want {
		t.Errorf("the program prints\n%swant\n%s", got, want)
	}
}

// copyFile copies a file, with what old and new strings in turn say replaced.
func copyFile(t *testing.T, from, to string, replaced ...string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, []byte(strings.NewReplacer(replaced...).Replace(string(text))), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestGo(t *testing.T) {
	need.Long(t, "a client is generated and compiled")
	dir := t.TempDir()
	generated := filepath.Join(dir, "ibwarden", "client.go")
	if err := os.Mkdir(filepath.Dir(generated), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		copyFile(t, name, filepath.Join(dir, name), "=> ../", fmt.Sprintf("=> %s/", absolute(t, "..")))
	}
	copyFile(t, "testdata/go/main.go", filepath.Join(dir, "main.go"))
	run(t, ".", "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "ibwarden", "-o", generated, description)
	run(t, dir, "go", "build", "-o", "program", ".")
	address, token := serve(t)
	check(t, run(t, dir, filepath.Join(dir, "program"), address, token))
}

func TestTypeScript(t *testing.T) {
	need.Long(t, "npm installs, and a client is generated and compiled")
	for _, program := range []string{"node", "npm"} {
		need.Program(t, program)
	}
	dir := t.TempDir()
	for _, name := range []string{"main.ts", "tsconfig.json", "package.json", "package-lock.json"} {
		copyFile(t, "testdata/typescript/"+name, filepath.Join(dir, name))
	}
	install := exec.Command("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		need.Need(t, fmt.Errorf("npm ci: %w: %s", err, out))
	}
	run(t, dir, "node_modules/.bin/openapi-typescript", absolute(t, description), "-o", "ibwarden.d.ts")
	run(t, dir, "node_modules/.bin/tsc", "-p", ".")
	address, token := serve(t)
	check(t, run(t, dir, "node", "main.js", address, token))
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	out, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
