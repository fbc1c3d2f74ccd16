package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// AttributeAnswer is one block of an attribute.
type AttributeAnswer struct {
	// Modifier is the attribute modifier by which it was asked for.
	Modifier uint32
	// Data are the bytes, zeros where an M_Key or an SM_Key stands.
	Data []byte
	// Fields are its values, and what they mean.
	Fields []ib.Explained
	// Old reports whether it was not read when the snapshot was made the last time, and is older.
	Old bool
}

// AttributeResult is what was read.
type AttributeResult struct {
	Kind AttributeKind
	Port *observed.Port
	// Answers are the blocks, in order.
	Answers []AttributeAnswer
}

// vendorDiagMax bounds a chain of VendorDiag blocks that is followed.
const vendorDiagMax = 64

// ReadAttribute asks a device of a fabric that was read, with the key that its port is known by there.
func ReadAttribute(ctx context.Context, l link.Link, f *observed.Fabric, t AttributeTarget, k AttributeKind, part AttributePart) (r AttributeResult, err error) {
	r.Kind = k
	if r.Port, err = t.port(k); err != nil {
		return r, err
	}
	mods, err := modifiers(k, r.Port, part)
	if err != nil {
		return r, err
	}
	if k.Performance {
		data, err := performance(ctx, l, f, r.Port, mad.MethodGet, k, nil)
		if err != nil {
			return r, err
		}
		return r, r.add(0, data, false)
	}
	chained := k.ID == smp.AttrVendorDiag && !part.Some
	if _, says := r.Port.Info.DiagCode.VendorDiagIndex(); chained && !says {
		return r, fmt.Errorf("%s reports no fault with vendor data (PortInfo.DiagCode 0x%04x): want VendorDiag and the number of a block", r.Port, uint16(r.Port.Info.DiagCode))
	}
	for i := 0; i < len(mods); i++ {
		data, err := subnet(ctx, l, r.Port, mad.MethodGet, k, mods[i], [mad.DataSize]byte{})
		if err != nil {
			return r, err
		}
		if err := r.add(mods[i], data[:], false); err != nil {
			return r, err
		}
		var d smp.VendorDiag
		if chained && len(mods) < vendorDiagMax && d.UnmarshalBinary(data[:]) == nil && d.NextIndex != 0 {
			mods = append(mods, uint32(d.NextIndex))
		}
	}
	return r, nil
}

// add enters an answer.
func (r *AttributeResult) add(modifier uint32, data []byte, old bool) error {
	fields, err := r.Kind.explain(modifier, data)
	if err != nil {
		return fmt.Errorf("%s: %w", r.Port, err)
	}
	r.elsewhere(fields)
	data = append([]byte{}, data...)
	r.Kind.conceal(data)
	r.Answers = append(r.Answers, AttributeAnswer{modifier, data[:min(len(data), r.Kind.size())], fields, old})
	return nil
}

// ofEnds are the fields of PortInfo that only end ports have, which of a switch is port 0, and ofExits
// those that ports of hosts do not have: there they read 0, which means nothing.
var (
	ofEnds = []string{"MKey", "GIDPrefix", "LID", "MasterSMLID", "CapabilityMask", "DiagCode", "MKeyLeasePeriod", "MKeyProtectBits", "LMC",
		"MasterSMSL", "InitType", "InitTypeReply", "MKeyViolations", "QKeyViolations", "GUIDCap", "ClientReregister",
		"MulticastPKeyTrapSuppressionEnabled", "SubnetTimeOut", "RespTimeValue", "CapabilityMask2"}
	ofExits = []string{"VLStallCount", "HOQLife", "PartitionEnforcementInbound", "PartitionEnforcementOutbound", "FilterRawInbound", "FilterRawOutbound"}
)

// elsewhere says of fields that read 0 when the port does not have them.
func (r *AttributeResult) elsewhere(fields []ib.Explained) {
	if r.Kind.ID != smp.AttrPortInfo || r.Kind.Performance {
		return
	}
	not, why := ofEnds, "end ports have it, of a switch port 0"
	switch {
	case r.Port.Node.Type() == ib.NodeCA:
		not, why = ofExits, "switch ports have it"
	case r.Port.IsEnd():
		return
	}
	for i := range fields {
		if f := &fields[i]; slices.Contains(not, f.Name) && strings.Trim(fmt.Sprint(f.Value), "0x") == "" {
			f.Meaning = why
		}
	}
}

// subnet sends one request of subnet management, and returns what was answered.
func subnet(ctx context.Context, l link.Link, p *observed.Port, method mad.Method, k AttributeKind, modifier uint32, data [mad.DataSize]byte) (out [mad.DataSize]byte, err error) {
	to, err := agentOf(p, k)
	if err != nil {
		return out, err
	}
	a := daemon.NewAsking(l)
	r := transact.Request{
		Path: to.Path, Respond: to.RespTime(), MKey: to.MKey(), Method: method, Attribute: k.ID, Modifier: modifier, Data: data,
	}
	if method == mad.MethodSet {
		r.Once = true
	}
	a.Window.Do(r, func(reply transact.Reply) {
		if err = reply.Err; err == nil {
			out = reply.SMP.Data
		}
	})
	if driven := l.Drive(ctx, a, a.Window.Idle); driven != nil {
		return out, driven
	}
	if err != nil {
		err = fmt.Errorf("%s: %s: %w%s", p, k.Name, err, hint(p, to, k, err))
	}
	return out, err
}

// agentOf is the port by which a port is asked: itself, port 0 of its switch, or another port of the
// same device where PortInfo is asked for.
func agentOf(p *observed.Port, k AttributeKind) (*observed.Port, error) {
	if a := p.Agent(); a.Reached {
		return a, nil
	}
	if k.ID == smp.AttrPortInfo {
		for i := range p.Node.Ports {
			if q := &p.Node.Ports[i]; q.Reached {
				return q, nil
			}
		}
	}
	return nil, fmt.Errorf("%s was not reached", p)
}

// hint says what may be behind a request that came to nothing.
func hint(p, agent *observed.Port, k AttributeKind, err error) string {
	var status transact.StatusError
	switch {
	case errors.As(err, &status) && (status.Status == mad.StatusUnsupportedAttrib || status.Status == mad.StatusUnsupportedMethod):
		return ": " + p.String() + " does not have it"
	case errors.As(err, &status) && status.Status == mad.StatusInvalidField:
		return ": it has no such block"
	case !errors.Is(err, transact.ErrNoAnswer):
		return ""
	case k.ID == smp.AttrSMInfo && !agent.Info.CapabilityMask.Has(smp.CapIsSM):
		return ": no subnet manager is behind it (PortInfo.CapabilityMask, IsSM)"
	case agent.Guarded():
		return ""
	case agent.Info.MKeyProtectBits != 0 || agent.Info.MKey != 0 || !agent.InfoRead:
		return ": its port has an M_Key that this command does not have (--data, --m-key-file)"
	}
	return ""
}

// HeldAttribute finds an attribute in a snapshot.
func HeldAttribute(f *observed.Fabric, t AttributeTarget, k AttributeKind, part AttributePart) (r AttributeResult, err error) {
	r.Kind = k
	if r.Port, err = t.port(k); err != nil {
		return r, err
	}
	switch {
	case k.Performance, k.ID != smp.AttrNodeInfo && !observed.Keeps(k.ID):
		return r, fmt.Errorf("a snapshot does not keep %s: read it from the fabric", k.Name)
	case k.ID == smp.AttrNodeInfo:
		return r, r.encode(0, &t.Node.Info, false)
	case k.ID == smp.AttrNodeDescription:
		var d smp.NodeDescription
		if err := d.SetString(t.Node.Description); err != nil || t.Node.Description == "" {
			return r, fmt.Errorf("%s: NodeDescription was not read", t)
		}
		return r, r.encode(0, &d, false)
	}
	mods, err := modifiers(k, r.Port, part)
	if err != nil {
		return r, err
	}
	inUse := mods
	switch {
	case k.Layout.Modifier == smp.ModifierPartPort:
		inUse, err = modifiers(k, r.Port, AttributePart{}) // four parts are kept, whatever the port has
	case k.Layout.Modifier != smp.ModifierInputOutput || part.Some:
		inUse = nil // what is kept was read
	}
	t.Node.Answers(func(b observed.Block, a smp.Attribute, read bool) {
		if err != nil || b.Attribute != k.ID || b.Port != r.Port && k.Layout.Of != smp.OfSwitch || part.Some && b.Modifier != mods[0] {
			return
		}
		if inUse != nil && !slices.Contains(inUse, b.Modifier) {
			return
		}
		err = r.encode(b.Modifier, a, !read)
	})
	if err == nil && len(r.Answers) == 0 {
		err = fmt.Errorf("%s: %s was not read: read it from the fabric", r.Port, k.Name)
	}
	return r, err
}

func (r *AttributeResult) encode(modifier uint32, a smp.Attribute, old bool) error {
	var data [mad.DataSize]byte
	if err := a.Encode(&data); err != nil {
		return err
	}
	return r.add(modifier, data[:], old)
}
