// Package perfmgr polls the performance counters of the ports of a subnet, round
// robin, as an engine: datagrams and time go in, datagrams come out.
//
//	New        returns a poller without a subnet
//	SetSubnet  sets the subnet to poll; readings of ports that remain are kept
//	Next       returns the next request; Receive, Lost and Expire report its outcome
//	Deadline   returns when Next or Expire has something to do
//	Readings   returns what is known of each port
//
// The poller asks queue pair 1 of port 0 of every switch for the counters of its
// external ports, and queue pair 1 of every CA and router port for its own. It uses a
// partition that the port shares with the manager's port; if the policy gives them
// none, the port is not asked and its counters are unknown. The poller never clears
// counters: other programs read them too.
//
// A counter is known if the last reading returned it. A port that does not answer,
// refuses, or answers nonsense has no known counters; an unknown counter is never
// reported as zero. Counters of 4 to 32 bits stop at their highest value: then the true
// count is at least that value, and the reading says so (Stuck). If the device has
// PortCountersExtended, its 64-bit counters are used.
//
// The poller does not follow ClassPortInfo.Redirect: with it, a host would choose whom
// the manager asks.
package perfmgr
