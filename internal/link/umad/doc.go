// Package umad is the way to a real fabric: Linux's user MAD devices,
// /dev/infiniband/umadN and issmN, in pure Go.
//
//	Devices  what adapters there are, from /sys
//	Open     a Link at one port of one of them
//	Link     moves packets, one goroutine, driven by poll
//	System   what the link needs of the machine; Machine is a real one
//
// Devices are the Linux kernel's: elsewhere Machine says so whenever it is asked for
// one.
//
// The kernel keeps the clock of every request: it gives back what nobody
// answered (ETIMEDOUT), which the engine hears as Lost. The link asks for no
// retries, the engine makes its own. The kernel also owns the upper half of
// transaction identifiers and refuses a second request with an identifier that
// is under way; the link therefore numbers what it sends and puts the engine's
// identifier back into answers.
//
// Answers need no registration of methods. What nobody asked for (SMInfo,
// traps) comes only while SetIsSM is on: then the link also registers for it
// and holds issmN, so that two managers at one port exclude each other and a
// reader disturbs none.
//
// Subnet administration has an agent of its own, which takes every request and
// leaves long messages to the kernel (JoinsLong); it exists while SetIsSM is on.
//
// When the device goes away Drive says so (Options.Notice), waits for the same
// port GUID to return, opens it again under whatever name it has, and hands
// the engine everything that was under way as Lost. The engine sees no time
// pass in between but when it looks. After ReturnWait Drive ends with ErrGone.
package umad
