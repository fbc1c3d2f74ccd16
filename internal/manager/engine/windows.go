package engine

import (
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// OnSend makes f see every request that leaves, retries included.
func (e *Engine) OnSend(f func(mad.Method, mad.AttributeID)) {
	for _, w := range e.windows() {
		w.OnSend = f
	}
}

// OnEnd makes f see how every request ended, as transact.Reply has it.
func (e *Engine) OnEnd(f func(method mad.Method, attribute mad.AttributeID, err error)) {
	for _, w := range e.windows() {
		w.OnEnd = f
	}
}

func (e *Engine) windows() []*transact.Window {
	return append([]*transact.Window{e.window, e.beside.window}, e.master.Windows()...)
}

// Counts is what the request windows have done.
func (e *Engine) Counts() transact.Counts {
	return e.window.Counts().Plus(e.beside.window.Counts()).Plus(e.master.Counts())
}
