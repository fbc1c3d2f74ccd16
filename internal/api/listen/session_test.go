package listen

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// rig is a store with a clock and tokens of a test.
type rig struct {
	*Sessions
	mu     sync.Mutex
	at     time.Time
	tokens map[string]resource.Caller
}

func newRig() *rig {
	r := &rig{at: time.Unix(1e9, 0), tokens: map[string]resource.Caller{}}
	r.Sessions = NewSessions(func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.at
	}, func(sums []string) (c resource.Caller, known bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, s := range sums {
			if c, known = r.tokens[s]; known && (c.Expires.IsZero() || r.at.Before(c.Expires)) {
				return c, true
			}
		}
		return resource.Caller{}, false
	})
	return r
}

func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at = r.at.Add(d)
}

// who is a token of a tenant.
func (r *rig) who(tenant, name string) Account {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := resource.Caller{Name: name, Tenant: tenant}
	r.tokens["sum of "+name] = c
	return Account{Caller: c, Sums: []string{"sum of " + name}, Shown: "token"}
}

func (r *rig) begin(t *testing.T, w Account) string {
	t.Helper()
	secret, made, ok := r.Begin(w)
	if !ok || !strings.HasPrefix(secret, "ibws_") || made.Caller != w.Caller {
		t.Fatalf("%q, %+v, %v: want a session of %v", secret, made, ok, w.Caller)
	}
	return secret
}

func (r *rig) lasts(t *testing.T, secret string, want bool, when string) {
	t.Helper()
	if _, lasts := r.Find(secret, false); lasts != want {
		t.Errorf("%s: the session lasts: %v, want %v", when, lasts, want)
	}
}

// TestSessionsEnd: after 8 hours however busy, after 30 minutes in which no person asked,
// and with what they began with.
func TestSessionsEnd(t *testing.T) {
	r := newRig()
	busy := r.begin(t, r.who("red", "tok-1"))
	for range 31 {
		r.pass(15 * time.Minute)
		if s, lasts := r.Find(busy, true); !lasts || s.Expires != time.Unix(1e9, 0).Add(SessionLife) || s.Idle.After(s.Expires) {
			t.Fatalf("%+v, %v after %v", s, lasts, r.now().Sub(time.Unix(1e9, 0)))
		}
	}
	r.pass(15*time.Minute - 1)
	r.lasts(t, busy, true, "just before 8 hours")
	r.pass(1)
	r.lasts(t, busy, false, "after 8 hours")

	idle := r.begin(t, r.who("red", "tok-1"))
	r.pass(Idle - 1)
	r.lasts(t, idle, true, "idle for almost 30 minutes") // a page asked, not a person
	r.pass(1)
	r.lasts(t, idle, false, "idle for 30 minutes")

	w := r.who("red", "tok-2")
	w.Until = r.now().Add(time.Minute)
	short := r.begin(t, w)
	r.pass(time.Minute - 1)
	r.lasts(t, short, true, "before its token ends")
	r.pass(1)
	r.lasts(t, short, false, "when its token ends")

	for name, change := range map[string]func(){
		"deleted":         func() { delete(r.tokens, "sum of tok-3") },
		"of another":      func() { r.tokens["sum of tok-3"] = resource.Caller{Name: "tok-3", Tenant: "blue"} },
		"of another name": func() { r.tokens["sum of tok-3"] = resource.Caller{Name: "tok-4", Tenant: "red"} },
		"read-only":       func() { r.tokens["sum of tok-3"] = resource.Caller{Name: "tok-3", Tenant: "red", ReadOnly: true} },
		"bound to some keys": func() {
			r.tokens["sum of tok-3"] = resource.Caller{Name: "tok-3", Tenant: "red", Keys: resource.KeyRange{First: 1, Last: 2}}
		},
		"to end some day": func() {
			r.tokens["sum of tok-3"] = resource.Caller{Name: "tok-3", Tenant: "red", Expires: r.at.Add(time.Hour)}
		},
	} {
		secret := r.begin(t, r.who("red", "tok-3"))
		code, _ := r.Code(r.who("red", "tok-3"))
		r.lasts(t, secret, true, "before its token is "+name)
		change()
		r.lasts(t, secret, false, "after its token is "+name)
		if _, good := r.Redeem(code); good {
			t.Errorf("a code is good after its token is %s", name)
		}
		r.who("red", "tok-3") // as it was
		r.lasts(t, secret, false, "after its token is "+name+" and is as it was again")
	}
	if out, left := r.begin(t, r.who("red", "tok-5")), r.begin(t, r.who("red", "tok-5")); true {
		found, _ := r.Find(out, true)
		r.End(&found)
		r.lasts(t, out, false, "after its end")
		r.lasts(t, left, true, "after the end of another")
		if r.Lasts(&found) {
			t.Error("it lasts for a stream after its end")
		}
	}
}

// TestCodes: a code is good once, for 60 s, and nothing else is one.
func TestCodes(t *testing.T) {
	r := newRig()
	w := r.who("red", "tok-1")
	code, expires := r.Code(w)
	if want := r.now().Add(CodeLife); expires != want || !strings.HasPrefix(code, "ibwc_") {
		t.Errorf("%q until %v, want %v", code, expires, want)
	}
	secret := r.begin(t, w)
	for _, x := range []string{"", "ibwc_", secret, "ibwc_" + secret[5:], "ibws_" + code[5:]} {
		if _, good := r.Redeem(x); good {
			t.Errorf("%q is a code", x)
		}
		if _, lasts := r.Find(x, true); lasts != (x == secret) {
			t.Errorf("%q is a session: %v", x, lasts)
		}
	}
	r.pass(CodeLife - 1)
	if got, good := r.Redeem(code); !good || got.Caller != w.Caller || got.Shown != "code" {
		t.Errorf("%+v, %v: want the maker", got, good)
	}
	if _, good := r.Redeem(code); good {
		t.Error("a code is good twice")
	}
	code, _ = r.Code(w)
	r.pass(CodeLife)
	if _, good := r.Redeem(code); good {
		t.Error("a code is good after 60 s")
	}
	w.Until = r.now().Add(time.Second)
	if _, expires = r.Code(w); expires != w.Until {
		t.Errorf("a code lasts until %v, its token until %v", expires, w.Until)
	}
	root := Account{Caller: resource.Caller{Name: "uid 0", Tenant: resource.Provider}}
	code, _ = r.Code(root)
	if got, good := r.Redeem(code); !good || got.Caller != root.Caller {
		t.Errorf("%+v, %v: want root", got, good)
	}
}

// TestSessionsAreBounded: of one caller and in all; a tenant that begins many ends its own.
func TestSessionsAreBounded(t *testing.T) {
	r := newRig()
	boss := r.begin(t, r.who(resource.Provider, "tok-boss"))
	w := r.who("red", "tok-1")
	first, second := r.begin(t, w), r.begin(t, w)
	r.pass(time.Second)
	r.Find(first, true)
	for range PerCaller - 1 {
		r.pass(time.Second)
		r.begin(t, w)
	}
	r.lasts(t, first, true, "as it was used since")
	r.lasts(t, second, false, "as it was idle for the longest time")
	for n := 2; len(r.sessions) < Max; n++ {
		r.begin(t, r.who("red", fmt.Sprint("tok-", n/PerCaller, "-of-many")))
	}
	for n := range 2 * Max {
		r.begin(t, r.who("red", fmt.Sprint("tok-", n/PerCaller, "-of-more")))
		r.begin(t, r.who("blue", fmt.Sprint("tok-blue-", n%40)))
		if len(r.sessions) > Max {
			t.Fatalf("%d sessions", len(r.sessions))
		}
		if n%100 == 0 { // nobody is idle, and no tenant begins too many
			r.pass(time.Second)
		}
	}
	r.lasts(t, boss, true, "as others began many")
	blue := 0
	for _, e := range r.sessions {
		if e.who.Caller.Tenant == "blue" {
			blue++
		}
	}
	if blue < Max/2-PerCaller {
		t.Errorf("blue has %d sessions, of %d", blue, len(r.sessions))
	}
	r.pass(Idle)
	if r.begin(t, w); len(r.sessions) != 1 {
		t.Errorf("%d sessions are kept after all others are over", len(r.sessions))
	}
	for range 3 * codesOfOne {
		r.Code(w)
	}
	for n := range 2 * CodesMax {
		r.Code(r.who("blue", fmt.Sprint("tok-", n)))
	}
	red := 0
	for _, e := range r.codes {
		if e.who.Caller.Tenant == "red" {
			red++
		}
	}
	if len(r.codes) != CodesMax || red != codesOfOne {
		t.Errorf("%d codes, %d of red: want %d and %d", len(r.codes), red, CodesMax, codesOfOne)
	}
}

// TestTooManyLogins: those that fail, by where they come from, and sessions of one caller.
func TestTooManyLogins(t *testing.T) {
	r := newRig()
	for n := range 3 * FailuresMax {
		if got := r.Failed("10.0.0.1"); got != (n >= FailuresMax) {
			t.Errorf("failure %d is too many: %v", n+1, got)
		}
	}
	if r.Failed("10.0.0.2") {
		t.Error("another address is blamed")
	}
	for n := range FailuresMax {
		if r.Failed(fmt.Sprintf("2001:db8::%x%%eth0", n)) {
			t.Errorf("failure %d is too many", n+1)
		}
	}
	if !r.Failed("2001:db8::ffff:1:2:3") || r.Failed("2001:db8:0:1::1") {
		t.Error("want a network of IPv6 to count as one address, and no other with it")
	}
	r.pass(FailuresWithin)
	if r.Failed("10.0.0.1") {
		t.Error("it is not forgotten after its time")
	}
	for n := range 3 * countedMax {
		r.Failed(fmt.Sprint("uid ", n))
	}
	if len(r.failures) > countedMax {
		t.Errorf("%d addresses are counted", len(r.failures))
	}
	w := r.who("red", "tok-1")
	for range BegunMax {
		r.begin(t, w)
	}
	if secret, _, ok := r.Begin(w); ok || secret != "" {
		t.Error("no session is too many")
	}
	r.begin(t, r.who("red", "tok-2"))
	r.pass(BegunWithin)
	r.begin(t, w)
}

// TestRace: many at once; -race looks on.
func TestRace(t *testing.T) {
	r := newRig()
	var all sync.WaitGroup
	code, _ := r.Code(r.who("red", "tok-0"))
	var used sync.Map
	for n := range 8 {
		all.Go(func() {
			w := r.who("red", fmt.Sprint("tok-", n))
			if _, good := r.Redeem(code); good {
				used.Store(n, true)
			}
			for range 50 {
				secret, _, _ := r.Begin(w)
				found, _ := r.Find(secret, true)
				r.Lasts(&found)
				c, _ := r.Code(w)
				r.Redeem(c)
				r.Failed("here")
				r.pass(time.Second)
				r.End(&found)
				if r.Lasts(&found) {
					t.Error("it lasts after its end")
				}
			}
		})
	}
	all.Wait()
	count := 0
	used.Range(func(any, any) bool { count++; return true })
	if count > 1 {
		t.Errorf("%d redeemed one code", count)
	}
}
