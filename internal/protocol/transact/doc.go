// Package transact keeps a window of outstanding SMPs:
// it assigns transaction identifiers, decides when a request may be sent, matches
// the answers, retries, and reports how each request ended.
//
// In: Do (a request and a callback for its end), Receive (an SMP that
// arrived) and Expire (time has passed). Out: Next, the packets to send in the
// order in which they were requested, retries first. A request ends exactly
// once: with an answer, or with an error after the last retry. The callback
// runs inside Receive or Expire and may call Do again.
//
// The window grows by one request for each answer to a first try
// and shrinks by a quarter when an answer is overdue, at most once in a round
// trip; the time-out follows the measured round-trip time and its variation.
// While answers are being lost, requests at the end of a phase are sent more than
// once, except those that must not be (Request.Once). After such a write was retried,
// the next to the same place waits (Request.Alone) until no copy
// of it can be under way.
// Transaction identifiers come from a seed. With a secret seed (Window.Seed) an
// answer counts only from a device that saw the request, or guessed 32 bits.
// There is no clock: the caller provides the time, counted
// from any fixed origin.
package transact
