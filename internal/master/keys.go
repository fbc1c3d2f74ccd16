package master

import (
	"fmt"
	"time"

	"github.com/ibwarden/ibwarden/internal/manager/mkey"
)

// keyKeeper keeps which generation of its M_Key each port has, before a port is
// given one.
type keyKeeper struct {
	save func(*mkey.Book) error // nil: it is not kept
	kept uint64                 // the version that is
	next time.Duration          // not sooner than this
	// awaited is the version that is kept here and waits for the store that managers
	// share, until late; 0 for none.
	awaited uint64
	late    time.Duration
	lost    bool // the store did not take the last one in time
}

// betweenAttempts is the time between two attempts to keep a book that could not
// be kept.
const betweenAttempts = time.Second

// KeepKeys hands save every state of the book that is to be kept. It is called
// before the first packet, with the book as it is kept, of a manager whose
// Config says Keep.
func (m *Engine) KeepKeys(save func(*mkey.Book) error) {
	if b := m.manager.Keys(); b != nil {
		m.keys = keyKeeper{save: save, kept: b.Version()}
	}
}

func (m *Engine) keepKeys(now time.Duration) {
	k, b := &m.keys, m.manager.Keys()
	if k.save == nil || b.Version() == k.kept || now < k.next || m.awaitsKeys(now, b) {
		return
	}
	version := b.Version()
	if err := k.save(b); err != nil {
		k.next = now + betweenAttempts
		m.warn(fmt.Sprintf("which port has which M_Key is not kept: %v", err))
		m.manager.KeysNotKept(err)
		return
	}
	if m.shareKeys(now, b) {
		return
	}
	k.kept, k.awaited = version, 0
	m.manager.KeysKept(version)
}
