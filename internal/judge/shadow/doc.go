// Package shadow keeps account of a fabric that another manager runs, from snapshots that
// were read one after the other and the policy that it should keep to: who could reach whom
// against the policy, from which reading to which, and what the other manager did not
// notice.
//
// A Ledger is told of each reading (Round) and of what went wrong between two, and gives
// records to keep; from those Summarize makes a report, and another Ledger goes on
// (NewLedger). Times are right to a round: what a record gives are the last round without a
// thing and the first with it.
//
// What was not read ends nothing. After a round that was not read entirely everything that
// it did not show stays open, marked as not seen since; so does, after any round, what is at
// a port that has gone with the switch that it was cabled to, since the two may be up
// elsewhere.
package shadow
