package views

import (
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// reason says in words how parties stand to each other.
func (v *view) reason(b *isolation.Between) string {
	text := v.why(b)
	switch {
	case b.Violations > 0:
		text += "; " + v.violation(b)
	case b.Verdict > isolation.Isolated && b.Cause != "":
		text += "; " + v.cause(b)
	}
	return text
}

// why says why ports can talk, or cannot.
func (v *view) why(b *isolation.Between) string {
	over, limited := v.joined(v.named(b.Over)), v.joined(v.named(b.Limited))
	switch {
	case b.Pairs == 0:
		return "there is no pair of ports"
	case b.Talking > 0 && over == "":
		over = "a partition that is not told"
	}
	both := "share no partition"
	if limited != "" {
		both = "are both limited members of " + limited + " and share nothing else"
	}
	switch {
	case b.Talking == b.Pairs:
		return "they can talk over " + over
	case b.Talking > 0 && b.Unread > 0:
		return fmt.Sprintf("%d of %d pairs can talk, over %s; of %d the keys were not read whole", b.Talking, b.Pairs, over, b.Unread)
	case b.Talking > 0:
		return fmt.Sprintf("%d of %d pairs can talk, over %s; the others %s", b.Talking, b.Pairs, over, both)
	case b.TooMany:
		return "their keys differ too much to compare them all"
	case b.Unread > 0:
		return fmt.Sprintf("of %d of %d pairs the keys were not read whole; by what was read, they %s", b.Unread, b.Pairs, both)
	}
	return "they " + both
}

// joined is a list in a sentence.
func (v *view) joined(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}

func (v *view) violation(b *isolation.Between) string {
	w := b.Witness
	over := w.Key.String()
	if name, knows := v.name(w.Key.Base()); knows && name != w.Key.Base().String() {
		over = name + " (" + over + ")"
	}
	text := fmt.Sprintf("%s and %s can talk over %s, which the policy does not allow", v.port(w.From), v.port(w.To), over)
	switch n := b.Violations - 1; {
	case n == 1:
		text += ", and so can another pair that may not"
	case n > 1:
		text += fmt.Sprintf(", and so can %d other pairs that may not", n)
	}
	return text
}

// port is the name of a port that the caller sees.
func (v *view) port(p *observed.Port) string {
	if v.seesPort(p) {
		return p.String()
	}
	return "a port of others"
}

// cause says on what a verdict rests: where, if the caller sees the place.
func (v *view) cause(b *isolation.Between) string {
	switch {
	case b.At == nil:
		return b.Cause
	case v.seesPort(b.At):
		return b.At.String() + ": " + b.Cause
	}
	return ofOthers(b.Verdict)
}

// ofOthers says on what a verdict rests without the place.
func ofOthers(v isolation.Verdict) string {
	if v == isolation.Unknown {
		return "something that this rests on was not read"
	}
	return "no switch would hold a host that forged its table"
}
