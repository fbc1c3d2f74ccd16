package testbed

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/endpoint"
)

// groupGID is the GID of the group that a stage has at a multicast LID.
func groupGID(lid ib.LID) ib.GID { return ib.GID{0xFF, 0x12, 14: byte(lid >> 8), 15: byte(lid)} }

// Attach lets a queue pair receive what is sent to a multicast LID. The error is the
// verbs'.
func (q *QP) Attach(lid ib.LID) error { return q.qp.AttachMulticast(lid, groupGID(lid)) }

// Multicast sends messages from a queue pair to a multicast LID, with the Q_Key of m or
// else the sender's own, and lets time pass for them to arrive. Drops and Sent are those
// since then.
func (s *Testbed) Multicast(from *QP, lid ib.LID, m Message) error {
	s.Drops, s.Sent = s.Drops[:0], s.Sent[:0]
	r := endpoint.SendRequest{
		Op: endpoint.OpSend, Data: make([]byte, m.Bytes), RemoteQP: ib.QPMulticast, RemoteQKey: from.attr.QKey,
		To: endpoint.Address{DLID: lid, SL: m.SL, Global: true, DGID: groupGID(lid), HopLimit: m.HopLimit},
	}
	if m.QKey != nil {
		r.RemoteQKey = *m.QKey
	}
	for range m.Count {
		if err := from.qp.PostSend(r); err != nil {
			return err
		}
	}
	return s.Advance(s.config.Timeout)
}
