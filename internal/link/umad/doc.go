// Package umad connects an engine to a real fabric through the Linux user MAD devices,
// /dev/infiniband/umadN and issmN, in pure Go.
//
//	Devices  the adapters of this machine, from /sys
//	Open     a Link at one port of an adapter
//	Link     moves packets, in one goroutine, driven by poll
//	System   what the link needs of the machine; Machine is the real one
//
// The devices exist on Linux only; on other systems every method of Machine returns an
// error.
//
// The kernel times every request: it returns a request without an answer
// (ETIMEDOUT), and the engine gets it as Lost. The link asks the kernel for no
// retries, since the engine retries by itself. The kernel also owns the upper half of
// transaction identifiers and refuses a second request with an identifier that
// is in use; the link therefore numbers what it sends and restores the engine's
// identifier in answers.
//
// Answers need no registration of methods. Unsolicited packets (SMInfo,
// traps) arrive only while SetIsSM is on: then the link also registers for them
// and holds issmN open, so that two managers at one port exclude each other and a
// program that only reads disturbs neither.
//
// Subnet administration has an agent of its own, which receives every request and
// leaves RMPP to the kernel (JoinsLong); it exists while SetIsSM is on.
// Another agent, without requests, receives the answers of performance management.
//
// When the device disappears, Drive reports it (Options.Notice), waits for the same
// port GUID to return, opens it again under its new name, and returns
// everything that was under way to the engine as Lost. The engine notices the gap only
// by its clock. After ReturnWait Drive returns ErrGone.
package umad
