// Package qib models an InfiniBand adapter as a Linux driver sees it: QLogic's IBA6120,
// which ib_qib drives. The kernel that loads the driver is real, and with it the subnet
// management agent, the transports and the verbs; the model is the chip below them.
//
//	New                          an adapter that was just powered on
//	ReadConfig, WriteConfig      its PCI configuration space
//	Read, Write                  its registers and send buffers, in BAR 0
//	Receive, SetPeer, SetReady   what the cable brings: packets, the other end, room there
//	LinkError                    what goes wrong on the cable
//	Advance, Deadline            time
//	Next                         what comes out: packets, interrupts, the state of its end
//
// An Adapter is a value without a clock. It reads and writes the memory of its machine
// through Memory, in the call that gives rise to it.
//
// # Packets
//
// A packet is whole, LRH to VCRC. The driver writes it without its checksums, which the
// adapter computes. On arrival it checks VCRC, versions, lengths, virtual lane and P_Key,
// drops and counts what is wrong, and gives a packet with a wrong ICRC to the driver with
// that error. A port that is not Active has only virtual lane 15.
//
// # Link
//
// A link trains when both ends poll and share a width and a speed; it takes TrainTime. The
// adapter says by a Link event whether it polls. A link that it takes down it takes down by
// an event that it does not poll, even when one that it does follows at once. So the other
// end always notices.
//
// # What it leaves out
//
// Only receive context 0 exists, which the kernel uses; what programs could map for
// themselves is not there. The chip has no register for an active width: the driver always
// says 4x, whatever the link trained with. No hardware error occurs.
package qib
