package rmpp

import "github.com/ibwarden/ibwarden/ib"

// usage is what one sender of packets takes of an endpoint's room, whatever
// queue pair, service level or key it uses: the room of all is no one's to fill.
type usage struct {
	sends, receives    int
	sending, receiving int // bytes of messages
}

// NewBy returns an endpoint without transfers that counts what peers take by
// the LID that sender gives for them, against the limits of Limits for one
// sender. It is asked when a transfer begins.
func NewBy[A comparable](l Limits, sender func(A) ib.LID) *Endpoint[A] {
	e := New[A](l)
	e.sender = sender
	return e
}

// userOf is the sender that a peer counts as; without a way to tell there is
// none, and room for one peer is all that counts.
func (e *Endpoint[A]) userOf(peer A) (ib.LID, bool) {
	if e.sender == nil {
		return 0, false
	}
	return e.sender(peer), true
}

// change enters what a sender takes more, or less.
func (e *Endpoint[A]) change(lid ib.LID, d usage) {
	u := e.users[lid]
	u.sends, u.receives = u.sends+d.sends, u.receives+d.receives
	u.sending, u.receiving = u.sending+d.sending, u.receiving+d.receiving
	if e.users[lid] = u; u == (usage{}) {
		delete(e.users, lid)
	}
}

// maySend reports whether there is room for a message of so many bytes. The
// second half of what may be sent at a time is for senders that have little
// under way: a few that acknowledge nothing cannot take it all.
func (e *Endpoint[A]) maySend(peer A, bytes int) bool {
	l := &e.limits
	if len(e.senders) >= l.Senders || e.sends[peer] >= l.PerPeer || e.bytes+bytes > l.SendTotal {
		return false
	}
	lid, known := e.userOf(peer)
	if !known {
		return true
	}
	u := e.users[lid]
	switch {
	case u.sends >= l.SenderSends, u.sends > 0 && u.sending+bytes > l.SenderSendTotal:
		return false
	case e.bytes+bytes > l.SendTotal/2 || len(e.senders) >= l.Senders/2:
		return u.sends == 0 && bytes <= l.SenderLittle
	}
	return true
}

// mayReceive reports whether there is room for one more message to join.
func (e *Endpoint[A]) mayReceive(peer A) bool {
	l := &e.limits
	if len(e.receivers) >= l.Receivers || e.receives[peer] >= l.PerPeer {
		return false
	}
	lid, known := e.userOf(peer)
	if !known {
		return true
	}
	u := e.users[lid]
	if len(e.receivers) >= l.Receivers/2 {
		return u.receives == 0
	}
	return u.receives < l.SenderReceives
}

// mayGrow reports whether there is room for the bytes that a segment adds.
func (e *Endpoint[A]) mayGrow(r *receiver, n uint32) bool {
	more := max(int(n)*SegmentSize-len(r.body), 0)
	if e.joining+more > e.limits.ReceiveTotal {
		return false
	}
	return !r.counted || e.users[r.user].receiving+more <= e.limits.SenderReceiveTotal
}

// grown enters the bytes that a segment added.
func (e *Endpoint[A]) grown(r *receiver, before int) {
	more := len(r.body) - before
	e.joining += more
	if r.counted && more != 0 {
		e.change(r.user, usage{receiving: more})
	}
}
