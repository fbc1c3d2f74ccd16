// Package election implements the SMInfo state machine, which decides which of several
// subnet managers is the master. The states are not active, discovering,
// standby and master.
//
// In: SMInfo requests (Serve, Receive), the other managers that a discovery
// found (Decide), answers (Answered), and
// time (Tick). Out: the reply, a Verdict, and Effects: messages to send, and
// whether to discover the subnet and call Decide again. Time is counted from
// any fixed origin; Due says when to call Tick next.
//
// An Engine begins as discovering. Higher priority outranks lower, and on a
// tie the lower GUID. No manager becomes master while it sees another master:
// a master of lower rank hands over with HANDOVER, which is answered
// with ACKNOWLEDGE. A standby polls its master and takes
// over, after discovering, when the master reports that it is no longer master, or when
// too many polls in a row get no answer or an unchanged ActCount.
//
// A manager that shares a secret with this one (Config.Key) is given up within
// Config.MasterTimeout of its end: it is polled five times in that time, and four polls
// in a row have to fail. One lost packet, or one lost poll, ends nothing: each poll is
// sent again by its sender's window as long as the next is not due. Any other manager is
// polled at PollInterval, and given up after Polls: OpenSM does not answer while it is
// busy. Effects.Since is when the first of the polls was sent that stayed unanswered: a
// manager that still ran then would have answered it, so nothing that it sent left later.
//
// With Config.Named only named managers count: those that are listed
// or share a secret with this one, and that answer from the
// port that they claim. Such a manager is sent the key of the pair, or that of
// Config when it is listed; no other manager is sent a key. HANDOVER, DISABLE and
// DISCOVER are accepted only from the manager that is polled, STANDBY from any that
// counts, since it only ends the state not active, and ACKNOWLEDGE only from the
// manager that was offered mastership.
//
// Without it only managers in Config.Trusted count, and if there is an SMKey, a control
// packet must carry it. The key is sent to trusted managers only, and shown only to
// a master that presented it. Without a list of trusted managers any manager of
// higher rank is handed the subnet, and the key. A request that is not legal in the
// present state is answered with mad.StatusInvalidField and changes nothing.
//
// A master hands over to a standby of lower rank when its administrator asks for it
// (HandOver). It tells a lower rank than that one's until it is master again, so that
// nobody hands the subnet back; where no rank is lower, the new master remembers it.
//
// docs/dev/election.md names what is promised of several managers, and how it is searched.
//
// An Engine is not safe for concurrent use.
package election
