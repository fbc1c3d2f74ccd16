package sso

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// oauthError is an answer of the token endpoint.
func oauthError(status int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, text)
	}
}

// TestWhatEndsASession: an answer of the provider that does not confirm somebody ends what he has, and
// one that is none does not.
func TestWhatEndsASession(t *testing.T) {
	set := func(name string, v any) func(*fake) {
		return func(f *fake) { f.claims = func(c js) { c[name] = v } }
	}
	for name, x := range map[string]struct {
		change func(*fake)
		lasts  bool
	}{
		"nothing":                {func(*fake) {}, true},
		"another group besides":  {set("groups", []string{"greens", "strangers", "blues"}), true},
		"called otherwise":       {set("preferred_username", "anne"), true},
		"no new refresh token":   {func(f *fake) { f.noRefresh = true }, true},
		"no ID token, user info": {func(f *fake) { f.noIDToken = true }, true},
		"no ID token, user info of another": {func(f *fake) {
			f.noIDToken = true
			f.userinfo["sub"] = "u2"
		}, false},
		"no ID token, user info without the group": {func(f *fake) {
			f.noIDToken = true
			f.userinfo["groups"] = []string{}
		}, false},
		"out of the group":          {set("groups", []string{"strangers"}), false},
		"in no group":               {set("groups", []string{}), false},
		"in another tenant's group": {set("groups", []string{"blues"}), false},
		"may only read by now":      {set("groups", []string{"readers"}), false},
		"another person":            {set("sub", "u2"), false},
		"another nonce":             {set("nonce", "other"), false},
		"another audience":          {set("aud", "other"), false},
		"an expired token":          {set("exp", 1), false},
		"revoked":                   {func(f *fake) { f.answer = oauthError(400, `{"error":"invalid_grant"}`) }, false},
		"the client is not known":   {func(f *fake) { f.answer = oauthError(401, `{"error":"invalid_client"}`) }, false},
		"dex, of a deleted user":    {func(f *fake) { f.answer = oauthError(500, `{"error":"server_error"}`) }, false},
		"an error of 200":           {func(f *fake) { f.answer = oauthError(200, `{"error":"invalid_grant"}`) }, false},
		"unavailable":               {func(f *fake) { f.answer = oauthError(400, `{"error":"temporarily_unavailable"}`) }, true},
		"too many requests":         {func(f *fake) { f.answer = oauthError(429, `{"error":"slow_down"}`) }, true},
		"a proxy before it":         {func(f *fake) { f.answer = oauthError(502, `{"error":"invalid_grant"}`) }, true},
		"an error page":             {func(f *fake) { f.answer = oauthError(500, `<html>`) }, true},
		"an endless answer":         {func(f *fake) { f.answer = oauthError(200, strings.Repeat(" ", AnswerMax+1)) }, true},
		"down":                      {func(f *fake) { f.Server.CloseClientConnections(); f.Server.Listener.Close() }, true},
	} {
		r := newRig(t)
		r.fake.userinfo = js{"sub": "u1", "groups": []string{"greens"}}
		_, who, in := r.login()
		if !in {
			t.Fatalf("%s: refused %q", name, r.refused)
		}
		x.change(r.fake)
		for range 2 {
			r.Check(t.Context())
			if _, known := r.CallerOf(who.Sums[0]); known != x.lasts {
				t.Errorf("%s: lasts %v, want %v\n%s", name, known, x.lasts, &r.log)
			}
		}
		if c := r.Counts(); x.lasts && c.Ended > 0 || !x.lasts && c != (Counts{Ended: 1}) {
			t.Errorf("%s: %+v", name, c)
		}
		if said := strings.Count(r.log.String(), "event="+listen.SessionRevoked); said > 0 != !x.lasts || said > 1 {
			t.Errorf("%s: logged %d times", name, said)
		}
	}
}

// TestAway: that the provider is away is logged once, and that it is back; nobody loses a session.
func TestAway(t *testing.T) {
	r := newRig(t)
	_, who, in := r.login()
	if !in {
		t.Fatal(r.refused)
	}
	for _, down := range []bool{true, true, true, false, false, true} {
		r.fake.answer = nil
		if down {
			r.fake.answer = oauthError(503, "")
		}
		r.Check(t.Context())
		if _, known := r.CallerOf(who.Sums[0]); !known {
			t.Fatal("the session has ended")
		}
	}
	text := r.log.String()
	if away, back := strings.Count(text, "event="+listen.ProviderAway), strings.Count(text, "event="+listen.ProviderBack); away != 2 || back != 1 {
		t.Errorf("away %d times, back %d times in\n%s", away, back, text)
	}
	if c := r.Counts(); c != (Counts{Confirmed: 2, Unanswered: 4}) {
		t.Errorf("%+v", c)
	}
}

// TestReader: who may read only keeps that, and gets no more without another login.
func TestReader(t *testing.T) {
	r := newRig(t)
	for _, groups := range [][]string{{"readers"}, {"readers", "blues"}, {"readers", "greens"}} {
		r.fake.claims = func(c js) { c["groups"] = []string{"readers"} }
		_, who, in := r.login()
		r.fake.claims = func(c js) { c["groups"] = groups }
		r.Check(t.Context())
		if c, known := r.CallerOf(who.Sums[0]); !in || known != (len(groups) == 1 || groups[1] == "blues") || known && !c.ReadOnly {
			t.Errorf("%q: %+v, %v", groups, c, known)
		}
	}
}

// TestForgotten: who has no session and no code any more is forgotten, and not asked about.
func TestForgotten(t *testing.T) {
	r := newRig(t)
	if _, _, in := r.login(); !in {
		t.Fatal(r.refused)
	}
	clear(r.inUse) // the code was not used, or he has logged out
	asked := r.fake.tokens
	r.Check(t.Context())
	if len(r.held) != 1 { // the code may be on its way
		t.Errorf("%d are held", len(r.held))
	}
	r.clock = listen.CodeLife + time.Second
	if r.Check(t.Context()); len(r.held) != 0 || r.fake.tokens != asked+1 {
		t.Errorf("%d are held, asked %d times", len(r.held), r.fake.tokens-asked)
	}
	r.clock = FlowLife + time.Second
	if r.Check(t.Context()); len(r.used) != 0 {
		t.Errorf("%d flows are kept", len(r.used))
	}
	ctx, stop := context.WithCancel(t.Context())
	tick := make(chan time.Time, 1)
	tick <- time.Now()
	ended := make(chan struct{})
	go func() { r.Watch(ctx, tick); close(ended) }()
	stop()
	<-ended
}

// TestRotation: a new refresh token is in the place of the old one.
func TestRotation(t *testing.T) {
	r := newRig(t)
	if _, _, in := r.login(); !in {
		t.Fatal(r.refused)
	}
	for i := range 3 {
		want := fmt.Sprint("r", i)
		r.fake.answer = func(w http.ResponseWriter, _ *http.Request) {
			oauthError(200, fmt.Sprintf(`{"access_token":"a","token_type":"Bearer","refresh_token":%q,"id_token":%q}`, want, r.fake.token(false)))(w, nil)
		}
		r.Check(t.Context())
		r.Check(t.Context())
		if got := r.fake.asked.Get("refresh_token"); got != want {
			t.Errorf("asked with %q, want %q", got, want)
		}
	}
}

// TestRoom: logins that come to nothing take no room for ever.
func TestRoom(t *testing.T) {
	r := newRig(t)
	for i := range heldMax {
		r.held[fmt.Sprint(i)] = &held{}
	}
	if answer, _, in := r.login(); in || answer.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("one more: %d", answer.StatusCode)
	}
	clear(r.held)
	for range exchangesMax {
		r.exchanging <- struct{}{}
	}
	if answer, _, in := r.login(); in || answer.StatusCode != http.StatusServiceUnavailable || r.fake.tokens != 1 {
		t.Errorf("too many at once: %d", answer.StatusCode)
	}
}

func TestWithinAMinute(t *testing.T) {
	if most := CheckEvery + CheckTime; most >= time.Minute {
		t.Errorf("what the provider ends can last %v", most)
	}
}
