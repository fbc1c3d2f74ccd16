package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestProviderFlags: what the flags of the OpenID provider say, and that each fault names its flag and
// its file.
func TestProviderFlags(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"secret": 0o600, "open": 0o644} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("s\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil { // whatever the umask
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	const all = "--listen 127.0.0.1:0 --oidc-issuer https://id.example --oidc-client-id c --oidc-client-secret-file DIR/secret --oidc-groups a=red"
	for line, want := range map[string]string{
		"":  "",
		all: "",
		"--listen 127.0.0.1:0 --oidc-groups a=red":          "want --oidc-issuer",
		"--listen 127.0.0.1:0 --oidc-client-id c":           "want --oidc-issuer",
		strings.Replace(all, "--listen 127.0.0.1:0", "", 1): "--oidc-issuer: want --listen",
		strings.Replace(all, "DIR/secret", "DIR/open", 1):   "--oidc-client-secret-file: DIR/open: mode 0644: want 0600",
		strings.Replace(all, "DIR/secret", "DIR/gone", 1):   "--oidc-client-secret-file: ",
		strings.Replace(all, "DIR/secret", "DIR/empty", 1):  "--oidc-client-secret-file: DIR/empty: it is empty",
		strings.Replace(all, "a=red", "red", 1):             "--oidc-groups: \"red\": want GROUP=TENANT",
		strings.Replace(all, "--oidc-groups a=red", "", 1):  "--oidc-groups: 0 entries",
		strings.Replace(all, "https://id", "http://id", 1):  "--oidc-issuer \"http://id.example\": want a URL",
		all + " --oidc-ca-file DIR/secret":                  "--oidc-ca-file: want certificates",
		all + " --oidc-console http://ib.example":           "--oidc-console \"http://ib.example\"",
		all + " --oidc-groups-claim=":                       "--oidc-groups-claim: want the name",
	} {
		f := flagsOf(t, strings.Fields(strings.ReplaceAll(line, "DIR", dir))...)
		err := f.Check()
		if want = strings.ReplaceAll(want, "DIR", dir); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	f := flagsOf(t, strings.Fields(strings.ReplaceAll(all, "DIR", dir))...)
	c, err := f.sso.read(f.listen)
	if err != nil || c.ClientSecret != "s" || len(c.Grants) != 1 || c.Claim != "groups" || len(c.Scopes) != 4 {
		t.Errorf("%+v, %v", c, err)
	}
}
