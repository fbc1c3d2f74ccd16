package engine

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// noticesMost is how many notices of one device are read at a time: one that never runs out of them is asked
// again in the next round, as any other.
const noticesMost = 16

// keepsNotices reports whether an end port keeps its events and tells nobody of them.
func keepsNotices(p *observed.Port) bool {
	return p.Reached && p.InfoRead && p.Info.CapabilityMask.Has(smp.CapNoticeSupported) && !p.Info.CapabilityMask.Has(smp.CapTrapSupported)
}

// pollNotices asks each that keeps its events among some end ports for its notices, calls heard with each that is about
// the device which keeps it, and removes it from the queue. A notice in the name of another port, or of
// the vendor's own kind, is removed and not told.
func pollNotices(w *transact.Window, ends []*observed.Port, heard func(from *observed.Port, slid ib.LID, n smp.Notice)) {
	for _, p := range ends {
		if keepsNotices(p) {
			askNotice(w, p, mad.MethodGet, smp.Notice{}, noticesMost, heard)
		}
	}
}

// askNotice sends a Get, or the Set that removes a notice which was read, and takes the next one from the answer.
func askNotice(w *transact.Window, p *observed.Port, m mad.Method, n smp.Notice, left int, heard func(*observed.Port, ib.LID, smp.Notice)) {
	r := transact.Request{Path: p.Path, Respond: p.RespTime(), MKey: p.MKey(), Method: m, Attribute: smp.AttrNotice, Once: m == mad.MethodSet}
	if m == mad.MethodSet && n.Encode(&r.Data) != nil {
		return
	}
	w.Do(r, func(reply transact.Reply) {
		var next smp.Notice
		if reply.Err != nil || next.UnmarshalBinary(reply.SMP.Data[:]) != nil || next.Type == smp.NoticeEmpty || next.NoticeCount == 0 || left == 0 {
			return
		}
		if m == mad.MethodSet && next == n {
			return // it does not remove what was read
		}
		if owns(p, next.IssuerLID) && next.IsGeneric {
			heard(p, p.Info.LID, next)
		}
		askNotice(w, p, mad.MethodSet, next, left-1, heard)
	})
}

// owns reports whether a LID is one of a port's own.
func owns(p *observed.Port, lid ib.LID) bool {
	return lid.IsUnicast() && lid>>p.Info.LMC == p.Info.LID>>p.Info.LMC
}
