// Package engine is the subnet-manager engine: it sweeps a subnet, works out what
// its devices ought to hold, writes the difference, proves from what was read
// back who can reach whom, and keeps watching.
//
// The engine is a value. In: packets (Receive), packets that nobody answered
// (Lost), time (Expire), a policy (SetPolicy). Out: packets (Next), when it
// wants to be called again (Deadline), and what happens, as it does (Event).
// It has no clock, socket or goroutine; the same inputs give the same outputs.
//
// One pass is observe, desire, diff, apply, prove. Nothing is written before
// the whole policy is known to fit the fabric that was found; a policy that
// does not fit is refused and leaves everything as it was. While another
// manager is master of the subnet nothing is written either.
//
// After the first pass light sweeps ask every switch for changes, devices that
// did not answer whether they do now and other managers what they are about, and
// read back a share of all tables, so that within one drift period every table
// was looked at: a foreign value is reported and put right. PortStateChange is
// cleared only by a sweep that reads the ports after that, so that no change is
// missed, those during the first pass included: the first light sweep finds it
// set and makes the subnet be read once more.
//
// A device that stops answering while its link stays up keeps what it has, and
// so does the switch port before it; a new policy still takes from that switch
// port what it takes from the device, and what cannot be taken is not given to
// others. Behind a link that carries data there may be a device that no sweep
// of this engine has found: what it may use by the switch port before it, or, where
// none holds it, everything, is given to nobody until it answers (Doubtful).
// Of two devices with one GUID neither is in any partition but the
// default one.
package engine
