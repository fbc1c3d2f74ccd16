package testbed

import (
	"fmt"
	"math"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// Forgery is an answer in another port's name.
type Forgery struct {
	From observed.Place // who sends it
	For  ib.NodeGUID    // who is asked
	// Attribute is what it says, Modifier what was asked for.
	Attribute smp.Attribute
	Modifier  uint32
	// Count is how many are sent for each Get, each with another transaction id.
	Count int
	// Seen sends them with the id of the Get, as who saw it could. Without it the
	// upper half of the id is right, and the lower guessed.
	Seen bool
}

// forger answers requests to another port.
type forger struct {
	Forgery
	at   *station
	data [mad.DataSize]byte
}

// Answer lets a program at an end port answer every Get of an attribute, sent
// by a directed route, that goes to another node, before that can.
func (s *Testbed) Answer(f Forgery) error {
	at, err := s.station(f.From)
	if err != nil {
		return err
	}
	if at.engine != nil {
		return fmt.Errorf("%s: a manager runs there; want another port", s.Name(f.From))
	}
	x := &forger{Forgery: f, at: at}
	if err := f.Attribute.Encode(&x.data); err != nil {
		return err
	}
	s.forgers = append(s.forgers, x)
	return nil
}

// forge lets forgers answer a request when it leaves for its destination by the last link
// of its path: they are faster than the destination.
func (s *Testbed) forge(seen fabric.Sighting) {
	if len(s.forgers) == 0 {
		return
	}
	to, _, _ := s.Fabric.Peer(seen.Node, seen.Port)
	for _, f := range s.forgers {
		var p mad.SMP
		if to != f.For || p.UnmarshalBinary(seen.MAD[:]) != nil {
			continue
		}
		if p.Class != mad.ClassSubnDirected || p.Method != mad.MethodGet || p.AttributeID != f.Attribute.ID() || !sameBlock(p.AttributeID, p.AttributeModifier, f.Modifier) {
			continue
		}
		s.Fabric.At(s.Fabric.Now(), func() { s.answerFor(f, p) })
	}
}

// answerFor sends the answers to one Get to the managers that are as many hops from
// the forger as the Get took. The route says that the answer comes from where the
// Get went; the way that it takes is the forger's.
func (s *Testbed) answerFor(f *forger, p mad.SMP) {
	for _, at := range s.stations {
		if at.engine == nil {
			continue
		}
		way, ok := s.search(f.From, at.Place)
		if !ok || len(way) != int(p.HopCount) {
			continue
		}
		p.Method, p.Direction, p.HopPointer = mad.MethodGetResp, true, p.HopCount+1
		p.Data = f.data
		clear(p.ReturnPath[:])
		for i, out := range way {
			p.ReturnPath[len(way)-i] = byte(out)
		}
		id := p.TransactionID
		for range f.Count {
			if !f.Seen {
				p.TransactionID = id&^math.MaxUint32 | s.Guess()&math.MaxUint32
			}
			f.at.post(&p, ib.LIDPermissive)
		}
	}
}
