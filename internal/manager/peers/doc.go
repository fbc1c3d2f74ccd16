// Package peers is what a subnet manager and the others of its subnet tell each other:
// SMInfo asked and answered, polls, control packets and trap 144, who of them counts,
// and which of them are rogues. Package election decides what follows from it.
//
// In: SMInfo requests (Receive), PortInfo that was read (Note, LookFor), packets of
// its windows (Window), and time (Expire, Tick, Advance). Out: requests (Next), calls of
// its Host, and when it wants to be called again (Due).
//
// With a profile only named managers count, those that are listed or share a secret,
// at the port that they claim. They are asked in rounds (Ask), for which a master does
// not wait. Without one, every port with IsSM set is asked in each election.
//
// Managers that share a secret tell each other which policy is in force, with a proof (see
// policy.go). That another has the same gives it nothing; that it has another bounds what is
// given after it is gone.
package peers
