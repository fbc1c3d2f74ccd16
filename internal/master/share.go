package master

import (
	"errors"
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mkey"
)

// sharing waits until what hosts register is in a store that other managers read.
type sharing struct {
	give     func() bool // nil: nothing is shared
	waiting  bool
	version  uint64        // that was handed over last
	released uint64        // of which hosts were told
	late     time.Duration // when they are told although it is not stored
	lost     bool          // the last one was told late
}

const (
	// shareWait is how long the answer to a host waits for a store that other managers
	// read. After that it leaves, and nothing waits until the store answers again: a
	// store that is lost does not keep hosts from the network.
	shareWait = time.Second
	// shareKeysWait is how long new M_Keys wait for such a store: longer than one takes
	// that has lost a member. After that ports keep those that they have, since a standby
	// could not find the new ones, and until the store answers again the next wait
	// shareKeysAgain only.
	shareKeysWait  = 15 * time.Second
	shareKeysAgain = 500 * time.Millisecond
)

// Share has give called whenever there is something new that other managers are to know:
// what hosts registered, or which generation of its M_Key a port gets. Whoever gives it stores
// what Registered, and Manager().Keys, say then, and calls Stored with the versions of both.
// give returns false where nobody is going to. It is called after Keep and KeepKeys.
func (m *Engine) Share(give func() bool) { m.share.give = give }

// Versions are those of what is to be shared, for Stored.
func (m *Engine) Versions() (registered, keys uint64) {
	if b := m.manager.Keys(); b != nil {
		keys = b.Version()
	}
	return m.admin.Version(), keys
}

// Stored tells what is stored for other managers by now.
func (m *Engine) Stored(registered, keys uint64) {
	s := &m.share
	if s.lost {
		s.lost = false
		m.warn("the store that managers share has what hosts register again")
	}
	if registered >= s.version {
		s.waiting = false
	}
	m.told(registered)
	m.keys.lost = false
	if k := &m.keys; k.awaited != 0 && keys >= k.awaited {
		k.kept, k.awaited = keys, 0
		m.manager.KeysKept(keys)
		m.Expire(m.now)
	}
}

// told has the answers leave that waited for a version.
func (m *Engine) told(version uint64) {
	if s := &m.share; version > s.released {
		s.released = version
		m.admin.Kept(version)
	}
}

// kept is called when a version is kept here.
func (m *Engine) kept(now time.Duration, version uint64) {
	s := &m.share
	if s.give == nil || !s.give() {
		m.admin.Kept(version)
		return
	}
	if s.version = version; !s.waiting {
		s.waiting, s.late = true, now+shareWait
	}
	if s.lost {
		m.told(version)
	}
}

// shareLate has the answers leave that have waited too long.
func (m *Engine) shareLate(now time.Duration) {
	s := &m.share
	if !s.waiting || s.lost || now < s.late {
		return
	}
	s.lost = true
	m.told(s.version)
	m.warn(fmt.Sprintf("the store that managers share has not taken what hosts register for %v: they are answered all the same, and a standby that takes over now does not know of it", shareWait))
}

// shareDue is when shareLate, or a wait for keys, has something to do.
func (m *Engine) shareDue() (at time.Duration, some bool) {
	if s := &m.share; s.waiting && !s.lost {
		at, some = s.late, true
	}
	if k := &m.keys; k.awaited != 0 && (!some || k.late < at) {
		at, some = k.late, true
	}
	return at, some
}

var errNotShared = errors.New("the store that managers share has not taken it")

// shareKeys reports whether a book that is kept here waits for the store.
func (m *Engine) shareKeys(now time.Duration, b *mkey.Book) bool {
	k := &m.keys
	if m.share.give == nil || !m.share.give() {
		return false
	}
	if k.awaited == 0 {
		k.late = now + shareKeysWait
		if k.lost {
			k.late = now + shareKeysAgain
		}
	}
	k.awaited = b.Version()
	return true
}

// awaitsKeys reports whether there is nothing to do for the book but to wait for the store.
func (m *Engine) awaitsKeys(now time.Duration, b *mkey.Book) bool {
	k := &m.keys
	if k.awaited != 0 && now >= k.late {
		k.awaited, k.next, k.lost = 0, now+betweenAttempts, true
		m.warn(fmt.Sprintf("which port has which M_Key is not kept: %v", errNotShared))
		m.manager.KeysNotKept(errNotShared)
		return true
	}
	return k.awaited != 0 && k.awaited == b.Version()
}
