// Package election decides which of several subnet managers is the master. It is
// the state machine behind the SMInfo attribute: not active, discovering,
// standby, master.
//
// In: SMInfo requests that arrived (Serve, Receive), what a discovery found of
// other subnet managers (Decide), answers to what was sent (Answered), and
// time (Tick). Out: the reply, a Verdict, and Effects: messages to send, and
// whether to discover the subnet and call Decide again. Time is counted from
// any origin that does not move; Due says when Tick is wanted next.
//
// An Engine begins as discovering. Higher priority outranks lower, and on a
// tie the lower GUID. Nobody makes itself master while it sees another master:
// one that is outranked is left to hand over, by HANDOVER that is answered
// with ACKNOWLEDGE, or only answered well. A standby polls its master and takes
// over, by way of discovering, when that says that it is no longer master, or when
// too many polls in a row bring no answer or an ActCount that does not move.
//
// With Config.Named managers are named, not believed: one counts if it is listed
// or shares a secret with this one, and if the port that it answers from is the
// port that it says it is behind. It is told the key of the pair, or that of
// Config when it is listed, and nobody else is told any. HANDOVER, DISABLE and
// DISCOVER are taken only from the manager that is polled, STANDBY from any that
// counts, since it only ends being not active, and ACKNOWLEDGE only from the
// manager that was offered mastership.
//
// Without it only managers in Config.Trusted count, and when there is an SMKey a control
// packet must carry it. It is sent to trusted managers only, and shown to none
// but a master that presented it. Without a list of trusted managers anyone of
// higher rank is handed the subnet, and the key. What is not legal in the
// present state is answered with mad.StatusInvalidField and changes nothing.
//
// An Engine must not be used by two goroutines at once.
package election
