package look

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/observed"
)

const (
	// generalTries is how often a request of performance management is sent, and generalWait how
	// long each time an answer is waited for.
	generalTries = 3
	generalWait  = 500 * time.Millisecond
	// offPortSelect is where every counter attribute has its PortSelect, in bytes.
	offPortSelect = 1
)

// datagram is an engine that sends one request to queue pair 1 and waits for its answer.
type datagram struct {
	*daemon.Asking
	to      mad.Address
	request pm.MAD
	tries   int
	due     time.Duration
	sent    bool
	answer  *pm.MAD
	err     error
}

func (d *datagram) done() bool { return d.answer != nil || d.err != nil }

// NextGeneral is link.General's.
func (d *datagram) NextGeneral(now time.Duration, m *[mad.Size]byte) (mad.Address, bool) {
	if d.sent || d.done() {
		return mad.Address{}, false
	}
	bytes, err := d.request.AppendBinary(nil)
	if err != nil {
		d.err = err
		return mad.Address{}, false
	}
	copy(m[:], bytes)
	d.sent, d.due = true, now+generalWait
	d.tries++
	return d.to, true
}

// ReceiveGeneral is link.General's.
func (d *datagram) ReceiveGeneral(_ time.Duration, m *[mad.Size]byte, from mad.Address) {
	var a pm.MAD
	if a.UnmarshalBinary(m[:]) != nil || a.Method != mad.MethodGetResp || a.TransactionID != d.request.TransactionID ||
		a.AttributeID != d.request.AttributeID || from.LID != d.to.LID {
		return
	}
	d.answer = &a
}

// LostGeneral is link.General's.
func (d *datagram) LostGeneral(_ time.Duration, m *[mad.Size]byte) {
	const offTransactionID = 8
	if binary.BigEndian.Uint64(m[offTransactionID:]) == d.request.TransactionID {
		d.again()
	}
}

func (d *datagram) again() {
	if d.sent = false; d.tries >= generalTries {
		d.err = errNoAnswer
	}
}

var errNoAnswer = errors.New("no answer")

// Expire is link.Engine's.
func (d *datagram) Expire(now time.Duration) {
	if d.sent && !d.done() && now >= d.due {
		d.again()
	}
}

// Deadline is link.Engine's.
func (d *datagram) Deadline() (time.Duration, bool) { return d.due, d.sent && !d.done() }

// performance sends a request of performance management about a port.
func performance(ctx context.Context, l link.Link, f *observed.Fabric, p *observed.Port, method mad.Method, k AttributeKind, data []byte) ([]byte, error) {
	to := p.Agent()
	key := shared(f.Self, to)
	switch {
	case !to.InfoRead || !to.Info.LID.IsUnicast():
		return nil, fmt.Errorf("%s: %s: it has no LID yet, by which counters are asked for", p, k.Name)
	case key == 0:
		return nil, fmt.Errorf("%s: %s: %s and %s have no partition in common, over which counters are asked for", p, k.Name, f.Self, to)
	}
	d := &datagram{Asking: daemon.NewAsking(l), to: mad.Address{LID: to.Info.LID, QP: ib.QP1, PKey: key}}
	d.request.Header = mad.Header{
		BaseVersion: 1, Class: mad.ClassPerfMgt, ClassVersion: pm.ClassVersion, Method: method, AttributeID: k.ID, TransactionID: uint64(rand.Uint32()) | 1,
	}
	copy(d.request.Data[:], data)
	if k.ID != mad.AttrClassPortInfo {
		d.request.Data[offPortSelect] = byte(p.Num)
	}
	if err := l.Drive(ctx, d, d.done); err != nil {
		return nil, err
	}
	switch {
	case d.err != nil:
		return nil, fmt.Errorf("%s: %s: %w in %d tries", p, k.Name, d.err, d.tries)
	case d.answer.Status != mad.StatusOK:
		return nil, fmt.Errorf("%s: %s: answered with status %s: %s does not have it", p, k.Name, d.answer.Status, p)
	case k.ID != mad.AttrClassPortInfo && d.answer.Data[offPortSelect] != byte(p.Num):
		return nil, fmt.Errorf("%s: %s: the answer is about port %d", p, k.Name, d.answer.Data[offPortSelect])
	}
	return d.answer.Data[:], nil
}

// shared is a key by which one end port reaches another; 0 for none. Of tables that were not read it
// is taken that the default partition is there.
func shared(self, to *observed.Port) ib.PKey {
	if self == nil || !self.PKeysKnown() || !to.PKeysKnown() {
		return ib.PKeyDefaultFull
	}
	for _, k := range self.PKeys {
		if k.IsValid() && (self == to || slices.ContainsFunc(to.PKeys, func(x ib.PKey) bool {
			return x.IsValid() && x.Base() == k.Base() && (x.IsFull() || k.IsFull())
		})) {
			return k
		}
	}
	return 0
}
