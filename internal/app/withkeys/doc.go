// Package withkeys lets programs that know nothing of M_Keys read a fabric where each port has
// one, and shows them none.
//
//	Table, Of     which key the agent at the end of a route or behind a LID has
//	Gate          fills the key into packets, refuses what may not be sent, blanks keys in answers
//	KeyServer     hands the keys of a running manager to root of its own machine
//	Client        asks it
//
// A key goes where a manager would send it: to the agent that was found behind the cable
// that the packet takes last, and over cables that led there when the key was given
// (observed.Port.Leads). Anything else gets what the program wrote itself.
package withkeys
