// Package transact keeps a window of outstanding subnet-management requests:
// it gives each a transaction identifier, decides when it may be sent, matches
// the answer, sends it again when none comes, and reports how it ended.
//
// In: Do (a request and what to call when it has ended), Receive (an SMP that
// arrived) and Expire (time has passed). Out: Next, the packets to send in the
// order in which they were asked for, retries first. A request ends exactly
// once: with an answer, or with an error after the last retry. The callback
// runs inside Receive or Expire and may call Do again.
//
// The window widens by one request for each answer that came at the first try
// and narrows by a quarter when an answer is overdue, at most once in a round
// trip; the time-out follows the measured round-trip time and its variation.
// While answers are being lost, requests at the end of a phase go out more than
// once, unless they must not (Request.Once). After a write of that kind that had
// to be sent again, the next to the same place waits (Request.Alone) until no copy
// of it can be under way any more.
// Transaction identifiers come from a seed: with a secret one (Window.Seed) an
// answer counts only from somebody who saw the request, or guessed 32 bits.
// There is no clock here: the time is whatever the caller says it is, counted
// from any origin that does not move.
package transact
