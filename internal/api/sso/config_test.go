package sso

import (
	"strings"
	"testing"
)

func TestParseGrant(t *testing.T) {
	for text, want := range map[string]Grant{
		"a=red": {"a", "red", false}, "a=red:read-only": {"a", "red", true}, "admins=provider": {"admins", "provider", false},
		"cn=ml,ou=groups,dc=example=red": {"cn=ml,ou=groups,dc=example", "red", false}, "Größe 1=red": {"Größe 1", "red", false}, "a==red": {"a=", "red", false},
	} {
		if got, err := ParseGrant(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": "want GROUP=TENANT", "red": "want GROUP=TENANT", "=red": "want GROUP=TENANT", "a=": "the tenant", "a=re d": "want 1 to 40", "a=red:write": "the tenant", "a=red:READ-ONLY": "the tenant",
		"a\n=red": "control characters", "\xff=red": "UTF-8", "\ufffd=red": "UTF-8", strings.Repeat("g", groupMax+1) + "=red": "1024 bytes",
	} {
		if got, err := ParseGrant(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %q", text, got, err, want)
		}
	}
}

func TestCheckConfig(t *testing.T) {
	good := Config{Issuer: "https://id.example/realm/", ClientID: "c", ClientSecret: "s", Name: "Example", Claim: "groups", Scopes: []string{"groups"}, Grants: []Grant{{"a", "red", false}}, Console: "https://ib.example:8443"}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Config){
		"issuer \"http://id.example\"":      func(c *Config) { c.Issuer = "http://id.example" },
		"issuer \"\"":                       func(c *Config) { c.Issuer = "" },
		"issuer \"id.example\"":             func(c *Config) { c.Issuer = "id.example" },
		"issuer \"https://id.example?a=b\"": func(c *Config) { c.Issuer = "https://id.example?a=b" },
		"issuer \"https://a:b@id.example\"": func(c *Config) { c.Issuer = "https://a:b@id.example" },
		"issuer \"https://id.example/ (x":   func(c *Config) { c.Issuer = "https://id.example/ (x" },
		"at most 100 bytes":                 func(c *Config) { c.Issuer = "https://id.example/" + strings.Repeat("a", 100) },
		"client-id \"\"":                    func(c *Config) { c.ClientID = "" },
		"client-secret-file":                func(c *Config) { c.ClientSecret = "" },
		"name \"\"":                         func(c *Config) { c.Name = "" },
		"name \"a\\nb\"":                    func(c *Config) { c.Name = "a\nb" },
		"groups-claim":                      func(c *Config) { c.Claim = "" },
		"groups: 0 entries":                 func(c *Config) { c.Grants = nil },
		"groups: 1001 entries":              func(c *Config) { c.Grants = make([]Grant, 1001) },
		"ca-file":                           func(c *Config) { c.CA = []byte("no PEM") },
		"scopes: \"a b\"":                   func(c *Config) { c.Scopes = []string{"a b"} },
		"console \"http://ib.example\"":     func(c *Config) { c.Console = "http://ib.example" },
		"console \"https://ib.example/\"":   func(c *Config) { c.Console = "https://ib.example/" },
		"console \"https://ib.example/x\"":  func(c *Config) { c.Console = "https://ib.example/x" },
		"console \"javascript:alert(1)\"":   func(c *Config) { c.Console = "javascript:alert(1)" },
		"console \"https://ib.example?x\"":  func(c *Config) { c.Console = "https://ib.example?x" },
	} {
		c := good
		change(&c)
		if err := c.Check(); err == nil || !strings.HasPrefix(err.Error(), want) && !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, issuer := range []string{"http://127.0.0.1:5556/dex", "http://localhost:1", "http://[::1]:1"} {
		if good.Issuer = issuer; good.Check() != nil {
			t.Errorf("%s: %v", issuer, good.Check())
		}
	}
}
