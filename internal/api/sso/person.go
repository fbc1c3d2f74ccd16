package sso

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Limits of what a person is called, in bytes.
const (
	subjectMax = 64 // of a subject as it is; of a longer one there is the SHA-256
	shownMax   = 64
)

// person is somebody as the provider describes him.
type person struct {
	subject, nonce, name string
	groups               []string
}

// personOf is whom tokens of the provider are about: by the ID token, and by the provider's answer
// about the access token where the former has no groups. subject is who it has to be; "" for
// anybody, by an ID token.
func (s *Service) personOf(ctx context.Context, p *provider, t *oauth2.Token, subject string) (who person, err error) {
	claims := map[string]json.RawMessage{}
	raw, _ := t.Extra("id_token").(string)
	switch {
	case raw != "":
		id, err := p.verifier.Verify(ctx, raw)
		if err == nil {
			err = s.look(id, &claims)
		}
		if err != nil {
			return who, fmt.Errorf("%w: the ID token: %w", errRefused, err)
		}
		if who.subject, who.nonce = id.Subject, id.Nonce; subject == "" {
			subject = id.Subject
		}
	case subject == "":
		return who, fmt.Errorf("%w: the provider gave no ID token", errRefused)
	}
	if claims[s.config.Claim] == nil && p.UserInfoEndpoint() != "" {
		info, err := p.UserInfo(ctx, oauth2.StaticTokenSource(t))
		if err != nil && (strings.HasPrefix(err.Error(), "401 ") || strings.HasPrefix(err.Error(), "403 ")) { // its status
			return who, fmt.Errorf("%w: %w", errRefused, err)
		} else if err != nil {
			return who, err
		}
		more := map[string]json.RawMessage{}
		if err := info.Claims(&more); err != nil {
			return who, fmt.Errorf("%w: %w", errRefused, err)
		}
		who.subject = info.Subject // which is looked at below
		for _, name := range []string{s.config.Claim, "preferred_username", "email"} {
			if claims[name] == nil && more[name] != nil {
				claims[name] = more[name]
			}
		}
	}
	if who.subject == "" || who.subject != subject {
		return who, fmt.Errorf("%w: the provider speaks of %q, not of %q", errRefused, who.subject, subject)
	}
	if who.groups, err = groupsOf(claims[s.config.Claim]); err != nil {
		return who, fmt.Errorf("%w: the claim %q: %w", errRefused, s.config.Claim, err)
	}
	who.name = resource.PersonName(shownOf(claims), plainSubject(who.subject), s.config.Issuer)
	return who, nil
}

// standard are the claims that decide who somebody is, and for whom and when.
var standard = []string{"iss", "sub", "aud", "exp", "iat", "nbf", "nonce", "azp"}

// look looks at what of an ID token the verifier does not.
func (s *Service) look(id *oidc.IDToken, claims *map[string]json.RawMessage) error {
	if err := id.Claims(claims); err != nil {
		return err
	}
	for name := range *claims {
		for _, of := range standard {
			if name != of && strings.EqualFold(name, of) {
				return fmt.Errorf("it has the claim %q, which some read as %q", name, of)
			}
		}
	}
	var azp string
	if raw := (*claims)["azp"]; raw != nil && json.Unmarshal(raw, &azp) != nil || azp != "" && azp != s.config.ClientID || azp == "" && len(id.Audience) > 1 {
		return fmt.Errorf("it was made for %q (azp), and is for %q (aud)", azp, id.Audience)
	}
	if now := s.now(); id.IssuedAt.After(now.Add(SkewMax)) {
		return fmt.Errorf("it was issued at %v, which is more than %v after %v", id.IssuedAt, SkewMax, now)
	}
	return nil
}

// groupsOf are the groups of a claim: a list of texts, or none where there is no claim.
func groupsOf(claim json.RawMessage) (groups []string, err error) {
	if claim == nil {
		return nil, nil
	}
	if err := json.Unmarshal(claim, &groups); err != nil {
		return nil, fmt.Errorf("want a list of texts: %w", err)
	}
	if len(groups) > GroupsMax {
		return nil, fmt.Errorf("%d groups: want at most %d: have the provider give this service fewer", len(groups), GroupsMax)
	}
	return groups, nil
}

// shownOf is what a person is called; it says nothing of who he is.
func shownOf(claims map[string]json.RawMessage) (shown string) {
	for _, name := range []string{"preferred_username", "email"} {
		if shown == "" && claims[name] != nil {
			_ = json.Unmarshal(claims[name], &shown) // else it is no text
		}
	}
	shown = strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == utf8.RuneError || r == '/' { // with a slash it could be an idempotency key of another
			return -1
		}
		return r
	}, shown))
	for len(shown) > shownMax {
		_, size := utf8.DecodeLastRuneInString(shown)
		shown = shown[:len(shown)-size]
	}
	if shown == "" {
		return "somebody"
	}
	return shown
}

// plainSubject is a subject as it can stand in a name: as it is, or its SHA-256.
func plainSubject(subject string) string {
	if len(subject) > subjectMax || strings.ContainsFunc(subject, func(r rune) bool { return notPlain(r) || r == '(' || r == ')' }) {
		return "sha256:" + listen.SecretSum([]byte(subject))
	}
	return subject
}
