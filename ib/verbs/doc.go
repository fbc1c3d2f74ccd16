// Package verbs is the programming interface of a host on the simulated fabric: queue
// pairs, completion queues and asynchronous events, as in the InfiniBand verbs.
// A program opens the device of one host and acts as that host. Its packets
// travel through the simulated switches, with the P_Keys that the subnet manager wrote.
//
// It is not a binding of libibverbs and does not use an adapter. The fabric is served
// by `ibwarden sim --verbs` (Dial), or runs inside the program (package
// simfabric).
//
//	Dial, Open                          the device of a host
//	Device.Query, QueryPort, QueryPKey, QueryGID
//	Device.CreateCQ, CreateQP, CreateAH, RegisterMemory
//	QP.Modify, Query, PostSend, PostReceive, AttachMulticast, DetachMulticast
//	CQ.Poll, CQ.Wait                    completions
//	Device.NextEvent, WaitEvent         asynchronous events
//	Device.JoinMulticast                as in librdmacm
//	Device.CreateEEContext, CreateRDQP  reliable datagrams, which libibverbs lacks
//
// Differences from libibverbs:
//
//   - An opened device is one protection domain. No other device, even of the same
//     host, can name its objects.
//   - Buffers belong to the device. PostSend copies what is to be sent,
//     PostReceive says how many bytes there is room for, and a completion has
//     the received data. A memory region is read and written by its methods. Room for
//     the GRH of a datagram is always added.
//   - A completion queue does not overflow: completions that do not fit wait at their
//     queue pair.
//   - Modify needs fewer attributes: queue pairs have no access flags and no limit of
//     outstanding RDMA READs. Atomics are refused.
//   - Queue pairs 0 and 1 are for management software, which uses
//     /dev/infiniband/umadN (`ibwarden sim exec`).
//
// Errors wrap the Err values of this package. A Device and its objects are safe for
// concurrent use.
package verbs
