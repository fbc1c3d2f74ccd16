// Package verbs is the programming interface of an InfiniBand host on the
// simulated fabric of this project: queue pairs, completion queues and
// asynchronous events, with the names and the meaning that they have in the
// InfiniBand verbs. A program opens the device of one host and acts as that host;
// what it sends travels as packets through the simulated switches, under the
// P_Keys that the subnet manager wrote.
//
// It is no binding of libibverbs and reaches no adapter. The fabric is one that
// `ibwarden sim --verbs` serves (Dial), or one inside the program (package
// simfabric).
//
//	Dial, Open                          the device of a host
//	Device.Query, QueryPort, QueryPKey, QueryGID
//	Device.CreateCQ, CreateQP, CreateAH, RegisterMemory
//	QP.Modify, Query, PostSend, PostReceive, AttachMulticast, DetachMulticast
//	CQ.Poll, CQ.Wait                    completions
//	Device.NextEvent, WaitEvent         asynchronous events
//	Device.JoinMulticast                what librdmacm does beside the verbs
//	Device.CreateEEContext, CreateRDQP  reliable datagrams, which no verbs have
//
// What differs from libibverbs:
//
//   - An opened device is one protection domain. Its objects are its own: others,
//     of the same host too, can name none of them.
//   - Buffers are the device's. PostSend takes a copy of what is to be sent,
//     PostReceive says how many octets there is room for, and a completion brings
//     what came. A memory region is read and written by its methods. The room for
//     the route header of a datagram is there anyway.
//   - A completion queue does not overflow: what it has no room for waits at its
//     queue pair.
//   - Modify wants fewer attributes than libibverbs: there are no access flags of a
//     queue pair and no limits of outstanding RDMA READs. Atomics are refused.
//   - Queue pairs 0 and 1 are for management software, which has its own way
//     (`ibwarden sim exec`, /dev/infiniband/umadN).
//
// Errors wrap the Err values of this package. A Device and all that was made with
// it may be used by several goroutines.
package verbs
