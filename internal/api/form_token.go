package api

import (
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Token is a credential as a caller sees it: never its secret.
type Token struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind" enum:"token,certificate,uri" doc:"what its holder shows: a secret, a certificate, or a certificate with a URI"`
	Tenant   string     `json:"tenant"`
	ReadOnly bool       `json:"read_only"`
	Keys     *KeyRange  `json:"keys,omitempty" doc:"the partitions that it is bound to"`
	Note     string     `json:"note,omitempty"`
	By       string     `json:"made_by,omitempty" doc:"who made it; a token that another made ends with that one; the provider, for a tenant, where that was one of his callers"`
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires,omitempty"`
}

// TokenBody is what a new credential is to be.
type TokenBody struct {
	Tenant      string    `json:"tenant,omitempty" maxLength:"40" doc:"the caller's when there is none"`
	ReadOnly    bool      `json:"read_only,omitempty" doc:"it changes nothing"`
	Keys        *KeyRange `json:"keys,omitempty" doc:"bind it to the partitions with these numbers: it sees and changes no other, and nothing but partitions and members"`
	Note        string    `json:"note,omitempty" maxLength:"200" doc:"what it is for"`
	Expires     time.Time `json:"expires,omitzero" doc:"when it ends; never when there is none"`
	Certificate string    `json:"certificate,omitempty" maxLength:"20000" doc:"instead of a secret: a client certificate in PEM, or its SHA-256 in 64 hexadecimal digits"`
	URI         string    `json:"uri,omitempty" maxLength:"500" doc:"instead of a secret: a URI in the subject alternative names of client certificates that the client CA signs; the provider may register one"`
}

// Kinds are the prefixes of the IDs of credentials by kind.
var Kinds = []struct{ Kind, Prefix string }{{"token", "tok-"}, {"certificate", "crt-"}, {"uri", "uri-"}}

// TokenOf is a credential as its tenant and the provider see it.
func TokenOf(t *resource.Token) Token {
	out := Token{ID: t.ID, Kind: "token", Tenant: t.Tenant, ReadOnly: t.ReadOnly, Note: t.Note, By: t.By, Created: t.Created}
	for _, k := range Kinds {
		if strings.HasPrefix(t.ID, k.Prefix) {
			out.Kind = k.Kind
		}
	}
	if t.Keys.First != 0 {
		out.Keys = &KeyRange{First: PKey(t.Keys.First.String()), Last: PKey(t.Keys.Last.String())}
	}
	if !t.Expires.IsZero() {
		out.Expires = &t.Expires
	}
	return out
}

// TokenFor is a credential as a caller sees it: of callers of another tenant he is told the tenant.
func TokenFor(s *resource.State, c resource.Caller, t *resource.Token) Token {
	out := TokenOf(t)
	if o, _ := s.Object((&resource.Token{ID: t.By}).Key()); t.By != "" && !c.IsProvider() {
		if by, is := o.(*resource.Token); !is || by.Tenant != c.Tenant {
			out.By = resource.Provider
		}
	}
	return out
}
