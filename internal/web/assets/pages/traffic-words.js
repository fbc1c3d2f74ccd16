// What the counters of a port count, and why nothing is known of them, in words.

const words = {
  PortXmitData: 'bytes sent', PortRcvData: 'bytes received', PortXmitPkts: 'packets sent', PortRcvPkts: 'packets received',
  PortUnicastXmitPkts: 'unicast packets sent', PortUnicastRcvPkts: 'unicast packets received',
  PortMulticastXmitPkts: 'multicast packets sent', PortMulticastRcvPkts: 'multicast packets received',
  SymbolErrorCounter: 'errors of symbols on the cable: look at the cable, its plugs and its bend',
  LinkErrorRecoveryCounter: 'times that the link recovered from errors by itself',
  LinkDownedCounter: 'times that the link went down',
  PortRcvErrors: 'packets received with an error',
  PortRcvRemotePhysicalErrors: 'packets received that were marked as bad before: look farther away',
  PortRcvSwitchRelayErrors: 'packets that the switch could not pass on',
  PortXmitDiscards: 'packets thrown away because the port was down or congested',
  PortXmitConstraintErrors: 'packets not sent, for their P_Key or their kind is not allowed here',
  PortRcvConstraintErrors: 'packets not taken, for their P_Key or their kind is not allowed here',
  LocalLinkIntegrityErrors: 'times that there were more errors on the link than its threshold allows',
  ExcessiveBufferOverrunErrors: 'times that the buffer overran again and again',
  VL15Dropped: 'management packets dropped for lack of room', QP1Dropped: 'packets to queue pair 1 dropped for lack of room',
  PortXmitWait: 'ticks in which there was something to send and no room at the other end: congestion',
  PortLocalPhysicalErrors: 'of the errors received: bad on this cable', PortMalformedPacketErrors: 'of the errors received: malformed',
  PortBufferOverrunErrors: 'of the errors received: no room in the buffer', PortDLIDMappingErrors: 'of the errors received: the address leads nowhere',
  PortVLMappingErrors: 'of the errors received: the lane is not in use', PortLoopingErrors: 'of the errors received: it would go out where it came in',
};

// meaning is what a counter counts; nothing for one that has no words here.
export function meaning(name) { return words[name] || ''; }

const faults = {
  'not-asked': 'not asked yet',
  'no-key': 'no partition in common with the manager; the policy needs one with SELF and the switches or hosts',
  'no-answer': 'no answer', refused: 'refused', malformed: 'an answer that made no sense',
};

// faultWords says why nothing is known of a port.
export function faultWords(fault) { return faults[fault] || fault; }
