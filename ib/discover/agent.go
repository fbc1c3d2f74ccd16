package discover

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// Times of a request.
const (
	// AnswerTime is how long the kernel waits for an answer before it asks again.
	AnswerTime = 200 * time.Millisecond
	// Retries is how often it asks again.
	Retries = 3
	// slack is how much longer than the kernel an agent waits.
	slack = time.Second
)

// ErrNoAnswer means that a device did not answer after all retries.
var ErrNoAnswer = errors.New("no answer")

// Agent asks through a umad file. One goroutine may use it.
type Agent struct {
	// MKey is the M_Key that requests carry. A manager may guard its devices so that
	// they do not answer without it; 0 is for devices without one.
	MKey ib.MKey

	conn   *umad.Conn
	id     uint32
	serial uint32
}

// NewAgent registers with the kernel for answers to directed-route requests. Closing
// the Conn ends the Agent.
func NewAgent(c *umad.Conn) (*Agent, error) {
	id, err := c.Register(umad.Registration{QPN: uint32(ib.QP0), Class: mad.ClassSubnDirected, ClassVersion: mad.ClassVersion})
	if err != nil {
		return nil, err
	}
	return &Agent{conn: c, id: id}, nil
}

// Ask sends a request and waits for its answer, Retries times at the most.
func (a *Agent) Ask(request *mad.SMP) (*mad.SMP, error) {
	a.serial++ // the kernel puts a number of its own into the upper half
	p := *request
	p.TransactionID, p.MKey = uint64(a.serial), a.MKey
	b, err := p.AppendBinary(nil)
	if err != nil {
		return nil, err
	}
	h := umad.Header{
		ID: a.id, QPN: uint32(ib.QP0), LID: ib.LIDPermissive,
		TimeoutMilliseconds: uint32(AnswerTime / time.Millisecond), Retries: Retries,
	}
	if err := a.conn.Send(h, b); errors.Is(err, syscall.EINVAL) {
		return nil, fmt.Errorf("%w: %w", ErrNoAnswer, err) // so Linux says that this very port does not admit the M_Key
	} else if err != nil {
		return nil, err
	}
	for {
		h, message, err := a.conn.Receive((Retries+1)*AnswerTime + slack)
		if err != nil {
			return nil, err
		}
		var head mad.Header
		if len(message) < mad.HeaderSize || head.UnmarshalBinary(message[:mad.HeaderSize]) != nil || uint32(head.TransactionID) != a.serial {
			continue // it is about an earlier request
		}
		if h.Status != 0 {
			return nil, fmt.Errorf("%w: %w", ErrNoAnswer, umad.Errno(h.Status))
		}
		var answer mad.SMP
		if err := answer.UnmarshalBinary(message); err != nil {
			return nil, err
		}
		return &answer, nil
	}
}
