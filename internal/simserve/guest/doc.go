// Package guest runs Linux machines whose InfiniBand adapter is simulated: Debian's kernel and
// tools, unmodified, in QEMU, with an adapter of package qib.
//
//	Start       a machine from Options; it boots while Start returns
//	Wire        where the packets of its port go, and the state of its end of the cable
//	Deliver, SetPeer, SetReady, LinkError   the other direction of the same cable
//	Ready, Exec, Put, Get   programs and files in it
//	Stop, Done  its end; it also ends with the program that started it
//	StartHost   a machine in the place of a host of a fabric that ibwarden sim serves
//	Host.Serve, Client, List   programs and files in it for other processes of the same user
//
// # The cable
//
// What is at the other end of the cable implements Wire and calls Deliver, SetPeer and
// SetReady. A packet is whole, LRH to VCRC; SMPs are packets too, datagrams on virtual lane
// 15 between queue pairs 0. Each end says by a qib.End whether it polls, and with what
// widths and speeds. A link is up, in either direction, once both ends polled for
// qib.TrainTime. An end that takes the link down says that it does not poll, even when it
// polls again at once, and then the other end's link is down at that moment. The calls of a
// Wire come in the order of what they report, one at a time, from a goroutine of the
// machine; they may call methods of other machines and of this one, and may block, which
// delays only what comes out of this port.
//
// # The image
//
// A machine boots a root file system in memory, made once from a list of Debian packages
// and kept in the user's cache directory: apt-get downloads what is missing, and no rights
// are needed. No dependency is followed, so that it stays small; a program whose library is
// missing says so when it is run. An image stays as it was made, also when Debian has newer
// packages: to have those, remove ibwarden/guest in the cache directory.
//
// Put and Get go over a serial line, 30 to 50 KB a second. What is larger goes faster over
// IPoIB, in a package, or in Options.Files.
//
// # What is needed
//
// QEMU for x86 with multi-process devices (Debian's qemu-system-x86), apt-get and dpkg-deb. KVM
// is not: with it the interrupts would have to take another way. A machine takes some
// 240 MB and, to boot, 7 s of processor time.
package guest
