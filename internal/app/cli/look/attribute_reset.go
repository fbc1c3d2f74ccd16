package look

import (
	"context"
	"fmt"
	"strings"

	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/pm"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// violations are the counters of PortInfo that may be set back.
var violations = []string{"MKeyViolations", "PKeyViolations", "QKeyViolations"}

// counter is one of the violation counters of a PortInfo.
func counter(i *smp.PortInfo, name string) *uint16 {
	switch name {
	case "MKeyViolations":
		return &i.MKeyViolations
	case "PKeyViolations":
		return &i.PKeyViolations
	}
	return &i.QKeyViolations
}

// Resettable are the counters of an attribute that may be set back to zero.
func (k AttributeKind) Resettable() []string {
	switch {
	case k.Performance:
		return pm.Resettable(k.ID)
	case k.ID == smp.AttrPortInfo:
		return violations
	}
	return nil
}

// Counters reads FIELD=0, the names as Find reads those of attributes, or all=0.
func (k AttributeKind) Counters(args []string) (out []string, err error) {
	can := k.Resettable()
	if can == nil {
		return nil, fmt.Errorf("%s has no counters: only those of PortInfo (%s) and of performance management may be set, and to 0 only", k.Name, strings.Join(violations, ", "))
	}
	for _, arg := range args {
		name, value, has := strings.Cut(arg, "=")
		if !has || value != "0" {
			return nil, fmt.Errorf("%q: want FIELD=0: a counter may only be set back to 0", arg)
		}
		if plain(name) == "all" {
			out = append(out, can...)
			continue
		}
		found := false
		for _, c := range can {
			if plain(c) == plain(name) {
				out, found = append(out, c), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s.%s may not be set%s; want one of %s", k.Name, name, names.DidYouMean(name, can), strings.Join(can, ", "))
		}
	}
	return out, nil
}

// ResetAttribute sets counters back to zero, by one Set that leaves everything else as it is, and returns the
// attribute as it was read before and as it was answered then. It refuses to write PortInfo of a
// port that another manager has (Foreign).
func ResetAttribute(ctx context.Context, l link.Link, f *observed.Fabric, t AttributeTarget, k AttributeKind, counters []string) (before, after AttributeResult, err error) {
	if before, err = ReadAttribute(ctx, l, f, t, k, AttributePart{}); err != nil {
		return before, after, err
	}
	p := before.Port
	after = AttributeResult{Kind: k, Port: p}
	if k.Performance {
		a, err := pm.Reset(k.ID, counters...)
		if err != nil {
			return before, after, err
		}
		data, err := a.AppendBinary(nil)
		if err == nil {
			data, err = performance(ctx, l, f, p, mad.MethodSet, k, data)
		}
		if err != nil {
			return before, after, err
		}
		return before, after, after.add(0, data, false)
	}
	if err := Foreign(f, p); err != nil {
		return before, after, err
	}
	modifier := before.Answers[0].Modifier
	data, err := subnet(ctx, l, p, mad.MethodGet, k, modifier, [mad.DataSize]byte{})
	if err != nil {
		return before, after, err
	}
	if err := clearCounters(p, &data, counters); err != nil {
		return before, after, err
	}
	data, err = subnet(ctx, l, p, mad.MethodSet, k, modifier, data)
	if err != nil {
		return before, after, err
	}
	return before, after, after.add(modifier, data[:], false)
}

// clearCounters makes of a PortInfo that was read the one that sets counters back.
func clearCounters(p *observed.Port, data *[mad.DataSize]byte, counters []string) error {
	var info smp.PortInfo
	if err := info.UnmarshalBinary(data[:]); err != nil {
		return err
	}
	if key := p.MKey(); p.IsEnd() && key != 0 && info.MKey != key {
		return fmt.Errorf("%s: PortInfo shows another M_Key than the one that this command has: to write it would change the key", p)
	}
	info.PortState, info.PortPhysicalState, info.LinkDownDefaultState = smp.PortStateNoChange, smp.PhysNoChange, smp.PhysNoChange
	info.ClientReregister = false
	for _, c := range counters {
		*counter(&info, c) = 0
	}
	return info.Encode(data)
}

// Foreign says whose the port is where that is another manager: the master that it names is behind
// another port than the one that this command works from, and the port does not guard itself with a
// key that this command has. Between reading PortInfo and writing it back that manager may write
// something else, which would be undone.
func Foreign(f *observed.Fabric, p *observed.Port) error {
	a := p.Agent()
	master := a.Info.MasterSMLID
	if !a.InfoRead || a.Guarded() || master == 0 || f.Self != nil && f.Self.InfoRead && f.Self.Info.LID == master {
		return nil
	}
	return fmt.Errorf("%s belongs to the subnet manager at LID %d, and this command has no key of that manager (--data): its PortInfo is not written", p, master)
}
