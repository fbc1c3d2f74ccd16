package ib

import (
	"fmt"
	"time"
)

// PortNum is the number of a port on its node: 1 to 254, and 0 for the
// management port of a switch.
type PortNum uint8

// PortNone is the forwarding-table entry for "no route".
const PortNone PortNum = 255

// SL is a service level, 0 to 15.
type SL uint8

// VL is a virtual lane: 0 to 14 carry data, 15 subnet management.
type VL uint8

// VLManagement is the virtual lane of subnet-management packets; as the target of an
// SLtoVLMappingTable entry it means "drop".
const VLManagement VL = 15

// MTU is a coded maximum payload: 1 to 5 for 256 to 4096 bytes.
type MTU uint8

// The codes of MTU.
const (
	MTU256 MTU = iota + 1
	MTU512
	MTU1024
	MTU2048
	MTU4096
)

// IsValid reports whether m is one of the five codes.
func (m MTU) IsValid() bool { return m >= MTU256 && m <= MTU4096 }

// Bytes is the payload size that m stands for, 0 for an invalid code.
func (m MTU) Bytes() int {
	if !m.IsValid() {
		return 0
	}
	return 128 << m
}

// String prints the size in bytes.
func (m MTU) String() string {
	if !m.IsValid() {
		return fmt.Sprintf("invalid MTU code %d", uint8(m))
	}
	return fmt.Sprint(m.Bytes())
}

// MTUFromBytes returns the code of a payload size.
func MTUFromBytes(n int) (MTU, error) {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == n {
			return m, nil
		}
	}
	return 0, fmt.Errorf("MTU %d: want 256, 512, 1024, 2048 or 4096 bytes", n)
}

// Rate is a coded static rate, as path and multicast records carry it.
type Rate uint8

// rateGbps holds the rate of each code in tenths of Gb/s; 0 for no such code.
// The marketing name of a rate stands for its signalling (code 2 is 2.5 Gb/s).
var rateGbps = [...]int{
	2: 25, 3: 100, 4: 300, 5: 50, 6: 200, 7: 400, 8: 600, 9: 800, 10: 1200,
	11: 140, 12: 560, 13: 1120, 14: 1680, 15: 250, 16: 1000, 17: 2000, 18: 3000,
	19: 280, 20: 500, 21: 4000, 22: 6000, 23: 8000, 24: 12000,
}

// IsValid reports whether r is a known code.
func (r Rate) IsValid() bool { return int(r) < len(rateGbps) && rateGbps[r] != 0 }

// Tenths is the rate in tenths of Gb/s (25 is 2.5 Gb/s), 0 for an unknown code.
// Codes are not in the order of their rates.
func (r Rate) Tenths() int {
	if int(r) >= len(rateGbps) {
		return 0
	}
	return rateGbps[r]
}

// String prints the rate in Gb/s.
func (r Rate) String() string {
	if !r.IsValid() {
		return fmt.Sprintf("invalid rate code %d", uint8(r))
	}
	t := rateGbps[r]
	if t%10 == 0 {
		return fmt.Sprint(t / 10)
	}
	return fmt.Sprintf("%d.%d", t/10, t%10)
}

// RateFromGbps returns the code of a rate given in tenths of Gb/s (25 is 2.5).
func RateFromGbps(tenths int) (Rate, error) {
	for r, t := range rateGbps {
		if t != 0 && t == tenths {
			return Rate(r), nil
		}
	}
	return 0, fmt.Errorf("rate %d.%d Gb/s: no such InfiniBand rate", tenths/10, tenths%10)
}

// TimeValue codes a time as 4.096 microseconds times two to its power, 0 to 31.
type TimeValue uint8

// Duration is the time that v stands for.
func (v TimeValue) Duration() time.Duration {
	return time.Duration(4096) << (v & 31) * time.Nanosecond
}

// NodeType is the kind of a device (NodeInfo.NodeType).
type NodeType uint8

// The kinds of device. All other values are reserved.
const (
	NodeCA     NodeType = 1
	NodeSwitch NodeType = 2
	NodeRouter NodeType = 3
)

// String names the kind of device.
func (t NodeType) String() string {
	switch t {
	case NodeCA:
		return "CA"
	case NodeSwitch:
		return "switch"
	case NodeRouter:
		return "router"
	}
	return fmt.Sprintf("unknown node type %d", uint8(t))
}
