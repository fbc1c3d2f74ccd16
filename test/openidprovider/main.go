// Command openidprovider is an OpenID provider for tests: the one of github.com/zitadel/oidc, with its
// login form, over a file of people that tests change while it runs.
//
//	openidprovider ADDRESS CLIENT SECRET CONSOLE PEOPLE
//
// It is at http://ADDRESS; CONSOLE is the URL of the console that it leads back to, PEOPLE the file, a
// list of {"name", "password", "groups", "disabled"} as JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 6 {
		log.Fatal("want ADDRESS CLIENT SECRET CONSOLE PEOPLE")
	}
	address, client, secret, console := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	people := people{file: os.Args[5]}
	web := storage.WebClient(client, secret, console+"/login/callback")
	s := &store{storage.NewStorageWithClients(people, map[string]*storage.Client{client: web}), people, console}
	handler := exampleop.SetupServer("http://"+address, s, slog.New(slog.NewTextHandler(os.Stderr, nil)), false)
	log.Fatal(http.ListenAndServe(address, handler))
}

// people are those of a file, which is read each time.
type people struct{ file string }

type person struct {
	Name, Password string
	Groups         []string
	Disabled       bool
}

func (p people) of(name string) *person {
	text, err := os.ReadFile(p.file)
	var list []person
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		log.Print(err)
		return nil
	}
	for _, x := range list {
		if x.Name == name && !x.Disabled {
			return &x
		}
	}
	return nil
}

// GetUserByUsername implements storage.UserStore.
func (p people) GetUserByUsername(name string) *storage.User {
	x := p.of(name)
	if x == nil {
		return nil
	}
	return &storage.User{ID: "id-" + name, Username: name, Password: x.Password, Email: name + "@example.com", EmailVerified: true}
}

// GetUserByID implements storage.UserStore.
func (p people) GetUserByID(id string) *storage.User { return p.GetUserByUsername(id[len("id-"):]) }

// ExampleClientID implements storage.UserStore.
func (people) ExampleClientID() string { return "service" }

// store is the one of the library, with groups, and with people who may be disabled.
type store struct {
	*storage.Storage
	people  people
	console string
}

// client is one of the library that lets a browser come back after it has logged out, and that
// may ask for groups.
type client struct {
	op.Client
	console string
}

func (c client) PostLogoutRedirectURIs() []string { return []string{c.console + "/console/"} }

func (c client) IsScopeAllowed(scope string) bool { return scope == "groups" }

// GetClientByClientID implements op.Storage.
func (s *store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{c, s.console}, nil
}

// TokenRequestByRefreshToken implements op.Storage.
func (s *store) TokenRequestByRefreshToken(ctx context.Context, token string) (op.RefreshTokenRequest, error) {
	r, err := s.Storage.TokenRequestByRefreshToken(ctx, token)
	if err == nil && s.people.GetUserByID(r.GetSubject()) == nil {
		err = errors.New("the user is disabled")
	}
	return r, err
}

// SetUserinfoFromToken implements op.Storage.
func (s *store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	if err := s.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin); err != nil {
		return err
	}
	x := s.people.of(subject[len("id-"):])
	if x == nil {
		return fmt.Errorf("there is no %q", subject)
	}
	info.AppendClaims("groups", x.Groups)
	return nil
}
