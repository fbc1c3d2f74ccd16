package desired

import (
	"fmt"
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// LIDClaim is a LID that a port says it has, or has left, against what it was
// assigned: as long as that is so, who sends from there is not known.
type LIDClaim struct {
	LID ib.LID
	By  *observed.Port
}

// LIDClaims lists the LIDs of the ports whose LIDs, as last read, are not those that
// d assigns them: the former and the latter. One that does not answer any more
// may have what it had. A port whose link carries no data claims nothing, nor does
// one that has no LID. mute tells the ports that
// nothing is taken from anyway; it may be nil.
func LIDClaims(ends []*observed.Port, d *observed.Desired, mute func(*observed.Port) bool) []LIDClaim {
	var out []LIDClaim
	for _, p := range ends {
		want := d.Port(p)
		if want.Elements&observed.ElementLID == 0 || !p.Info.LID.IsUnicast() || !carries(p) || mute != nil && mute(p) {
			continue
		}
		if p.Info.LID == want.Info.LID && p.Info.LMC == want.Info.LMC {
			continue
		}
		mine := LIDAssignment{p, want.Info.LID, want.Info.LMC}
		for i := range want.Info.LMC.Count() {
			out = append(out, LIDClaim{want.Info.LID + ib.LID(i), p})
		}
		first := p.Info.LID &^ ib.LID(p.Info.LMC.Count()-1)
		for i := range p.Info.LMC.Count() {
			if l := first + ib.LID(i); l.IsUnicast() && !mine.Contains(l) {
				out = append(out, LIDClaim{l, p})
			}
		}
	}
	return out
}

// LIDThefts says of the claims that were not there before who took which LID of whom. owners are
// the ports by the LIDs that they were assigned; it is not called where there is nothing new.
func LIDThefts(claims, before []LIDClaim, owners func() map[ib.LID]*observed.Port) (texts []string) {
	var of map[ib.LID]*observed.Port
	for _, c := range claims {
		if slices.ContainsFunc(before, func(b LIDClaim) bool { return b.LID == c.LID && b.By.GUID == c.By.GUID }) {
			continue
		}
		if of == nil {
			of = owners()
		}
		if owner := of[c.LID]; owner != nil && owner != c.By {
			texts = append(texts, fmt.Sprintf("%s took LID %d of %s", c.By, c.LID, owner))
		}
	}
	return texts
}

// carries reports whether packets can come from an end port, by what the switch
// port before it says: what the port says of itself does not count.
func carries(p *observed.Port) bool {
	return p.Peer == nil || p.Node.Switch != nil || !p.Peer.InfoRead || p.Peer.Info.PortState == smp.PortActive
}
