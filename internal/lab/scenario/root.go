package scenario

import (
	"errors"

	"github.com/ibwarden/ibwarden/internal/lab/scenario/testbed"
)

// reply is the result of the last sa or pm line.
type reply struct {
	*HostReply
	step   *step
	judged bool
}

// rootVerbs are the actions of root on a host, or of the owner of a device.
func rootVerbs() []verb {
	return []verb{
		{"own", "NODE[:PORT] ATTRIBUTE[modifier] FIELD=VALUE...", "a port's attribute is changed by who owns the device, whatever M_Key guards it", false, acting(OwnAction)},
		{"describe", "NODE TEXT", "a node is given another description, on the node itself", false, acting(Describe)},
		{"trap", "NODE[:PORT] NUMBER [FIELD=VALUE...]", "a host's root sends a trap to the manager that its port knows of", false, acting(Trap)},
		{"rival", "NODE[:PORT] FIELD=VALUE... [silent=on] | NODE[:PORT] none", "a host's root says that a subnet manager runs there, and answers for it with this SMInfo", false, acting(Rival)},
		{"answer", "NODE[:PORT] for NODE ATTRIBUTE[modifier] FIELD=VALUE... [count=N] [seen=on]",
			"a host's root answers each Get of this that reaches the second node, with count (1) transaction ids that it guesses, or with the right one", false, acting(Answer)},
		{"sa", "NODE[:PORT] METHOD RECORD [FIELD=VALUE...] [sa-key=KEY] [pkey-index=N] [path-bits=N] [from-lid=LID] [to-lid=LID] [first-segment=on] [silent=on]",
			"a host asks subnet administration; METHOD is get, gettable, set, delete or getmulti", false, asked(SA)},
		{"pm", "NODE[:PORT] get|set COUNTERS [FIELD=VALUE...] to-lid=LID [pkey-index=N]", "a host reads or writes the counters of a port", false, asked(PM)},
	}
}

// acting is a statement that needs only the stage.
func acting(read func(*Operands) (HostAction, error)) func(*args) (action, error) {
	return func(a *args) (action, error) {
		act, err := read(a.Operands)
		return func(w *world) error { return act(w.Testbed) }, err
	}
}

// asked is a statement that sends a request to a queue pair 1.
func asked(read func(*Operands) (*HostRequest, error)) func(*args) (action, error) {
	return func(a *args) (action, error) {
		q, err := read(a.Operands)
		a.lastGeneral = q
		return func(w *world) error {
			w.reply = nil
			r, err := q.Send(w.Testbed)
			if err == nil {
				w.reply = &reply{r, w.step, r.Silent}
			}
			return err
		}, err
	}
}

var errNoReply = errors.New("want an sa or pm line before it")

// expectReply is about the answer to the last sa or pm line.
func expectReply(a *args) (action, error) {
	if a.lastGeneral == nil {
		return nil, a.Fault(testbed.ScriptWord{}, "want an sa or pm line before it")
	}
	judge, err := a.lastGeneral.Expect(a.Operands)
	return func(w *world) error {
		if w.reply == nil {
			return errNoReply
		}
		w.reply.judged = true
		w.check(judge(w.Testbed, w.reply.HostReply))
		return nil
	}, err
}
