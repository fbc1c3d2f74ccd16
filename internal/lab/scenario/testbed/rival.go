package testbed

import (
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Rival lets a program at an end port pose as a subnet manager: it says that one
// runs there, and answers everybody who asks for SMInfo with info, a little more
// active each time. One that is handed the subnet says that it is master. With silent it answers nobody. A nil info ends that.
func (s *Testbed) Rival(p observed.Place, info *smp.SMInfo, silent bool) error {
	at, err := s.station(p)
	if err != nil {
		return err
	}
	if at.engine != nil {
		return fmt.Errorf("%s: a manager runs there; want another port", s.Name(p))
	}
	at.rival, at.silent, at.manages = info, silent, info != nil
	at.setIsSM(info != nil)
	return nil
}

// answerRival answers a Get or Set of SMInfo.
func (at *station) answerRival(p *mad.SMP, slid ib.LID) {
	if at.silent || p.AttributeID != smp.AttrSMInfo || p.Method != mad.MethodGet && p.Method != mad.MethodSet {
		return
	}
	at.rival.ActCount++
	if p.Method == mad.MethodSet && smp.SMControl(p.AttributeModifier) == smp.SMControlHandover {
		at.rival.SMState = smp.SMMaster
	}
	if at.rival.Encode(&p.Data) != nil {
		return // a script's fields were checked
	}
	p.MakeResponse(mad.StatusOK)
	if p.Class == mad.ClassSubnDirected {
		slid = ib.LIDPermissive
	}
	at.post(p, slid)
}

// Trap sends a trap from an end port to the manager that the port knows of, as
// its root can.
func (s *Testbed) Trap(from observed.Place, n *smp.Notice) error {
	at, err := s.station(from)
	if err != nil {
		return err
	}
	if at.engine != nil {
		return fmt.Errorf("%s: a manager runs there; want another port", s.Name(from))
	}
	p := mad.SMP{
		BaseVersion: mad.BaseVersion, Class: mad.ClassSubnLID, ClassVersion: mad.ClassVersion, Method: mad.MethodTrap,
		TransactionID: s.nextID, AttributeID: smp.AttrNotice,
	}
	s.nextID++
	if err := n.Encode(&p.Data); err != nil {
		return err
	}
	at.post(&p, s.Fabric.Agent(from.Node).Port(from.Port).MasterSMLID)
	return nil
}

// Own writes an attribute of a port as the owner of the device can, whatever M_Key
// protects it.
func (s *Testbed) Own(p observed.Place, modifier uint32, attr smp.Attribute) error {
	before := s.sender
	if err := s.SendFrom(p, false); err != nil {
		return err
	}
	s.deaf = true // what the device does for its owner no packet has told
	defer func() { s.deaf = false }()
	r, err := s.Ask(Question{To: p, Modifier: modifier, MKey: s.Fabric.Agent(p.Node).Port(p.Port).MKey, Attribute: attr, Set: true})
	if s.sender = before; err == nil && !r.Good() {
		err = fmt.Errorf("%s: its own Set of %s: %s", s.Name(p), smp.AttributeName(attr.ID()), r.Outcome())
	}
	clear(s.ways)
	return err
}
