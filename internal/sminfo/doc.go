// Package sminfo decides which of several subnet managers is the master. It is
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
// with ACKNOWLEDGE. A standby polls its master and takes over, by way of
// discovering, when too many polls in a row bring no answer or an ActCount
// that does not move.
//
// Only managers in Config.Trusted count, and when there is an SMKey a control
// packet must carry it. It is sent to trusted managers only, and shown to none
// but a master that presented it. Without a list of trusted managers anyone of
// higher rank is handed the subnet, and the key. What is not legal in the
// present state is answered with mad.StatusInvalidField and changes nothing.
//
// An Engine must not be used by two goroutines at once.
package sminfo
