package audit

import (
	"bytes"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// operationChecks are those of the history of the fabric, and of the reading itself.
var operationChecks = []check{
	{number: 52, name: "write-order", title: "A change was written in an order that opened the fabric for a while", severity: Critical,
		why: "it is visible in the order of a manager's writes, not in their result"},
	{number: 53, name: "partial-write", title: "A write failed and the manager went on", severity: Critical,
		why: "it is visible in the answers to a manager; the result of such a write is reported as policy-drift"},
	{number: 54, name: "failed-open", title: "The whole fabric is one partition of full members", severity: Critical,
		how:    "P_KeyTables of all CA and router ports: 0xffff and nothing else, which OpenSM leaves when it cannot read its partitions file",
		advice: "look for a parse error in the manager's log, correct the file, and keep tenants off until the tables have changed", run: (*auditor).failedOpen},
	{number: 55, name: "takeover-changed", title: "Another manager took over and changed partitions or routes", severity: High, needs: needsEarlier,
		how:    "MasterSMLID and its port's GUID against the earlier reading; if they differ, P_KeyTables, enforcement bits and forwarding tables",
		advice: "give all managers the same policy; a standby applies its own when it takes over", run: (*auditor).takeoverChanged},
	{number: 56, name: "pkey-violations", title: "A port received packets with a wrong P_Key", severity: Medium,
		how:    "PortInfo.P_KeyViolations of end ports and their switch ports: not 0, or grown since the earlier reading",
		advice: "look for traps 257 and 259 in the manager's log: they name sender and receiver. It is a probe, or a misconfigured host", run: (*auditor).pkeyViolations},
	{number: 61, name: "not-read", title: "A value could not be read, or was read too long ago", severity: Critical,
		how:    "requests without an answer, links that are up without a known device behind them, and the age of the reading",
		advice: adviceUnread, run: (*auditor).notRead},
	{number: 65, name: "port-not-well", title: "A port reports a fault", severity: Low,
		how:    "PortInfo.DiagCode of end ports, not 0, and the chain of VendorDiag blocks that it refers to. A block that was not read is unknown",
		advice: "a port in self-test or initializing recovers by itself; for an error, send the code and the data to the vendor (ibwarden show diagnostics) and replace the device", run: (*auditor).notWell},
}

func (a *auditor) failedOpen() {
	hosts, open := a.hosts(), 0
	for _, p := range hosts {
		keys := a.keys(p)
		if len(keys) == 1 && keys[0] == ib.PKeyDefaultFull {
			open++
		}
	}
	if len(hosts) > 1 && open == len(hosts) {
		a.found("the fabric", "%s and nothing else in the P_KeyTables of all %d CA and router ports", ib.PKeyDefaultFull, open)
	}
}

func (a *auditor) takeoverChanged() {
	for _, p := range a.f.EndPorts() {
		a.info(p)
	}
	now, then := a.f.Manager(), a.options.Earlier.Manager()
	if now == nil || then == nil || now.GUID == then.GUID {
		return
	}
	for _, n := range a.f.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			if old := a.earlier(p); old != nil && p.Reached {
				a.changed(p, old, then)
			}
		}
		if n.Switch != nil && slices.Contains(n.Switch.LFTRead, false) {
			a.unknown(nodePlace(n), "the forwarding table was not read as a whole")
		}
		if old := a.options.Earlier.Node(n.GUID()); n.Switch != nil && old != nil && old.Switch != nil &&
			!slices.Equal(routed(n.Switch), routed(old.Switch)) {
			a.found(nodePlace(n), "another forwarding table than under %s", then)
		}
	}
}

// routed is the part of a forwarding table that was read, without its tail.
func routed(s *observed.Switch) []ib.PortNum {
	t := s.LFT
	for len(t) > 0 && t[len(t)-1] == ib.PortNone {
		t = t[:len(t)-1]
	}
	return t
}

func (a *auditor) changed(p, old, before *observed.Port) {
	if p.IsEnd() || p.FacesEnd() {
		now, then := a.keys(p), a.earlierKeys(old)
		slices.Sort(now)
		slices.Sort(then)
		if !slices.Equal(now, then) && !unreadKeys(p) && !unreadKeys(old) {
			a.found(place(p), "the P_KeyTable has %v, and had %v under %s", now, then, before)
		}
	}
	if p.FacesEnd() && a.info(p) && (p.Info.PartitionEnforcementInbound != old.Info.PartitionEnforcementInbound ||
		p.Info.PartitionEnforcementOutbound != old.Info.PartitionEnforcementOutbound) {
		a.found(place(p), "PartitionEnforcementInbound %s and Outbound %s, and other bits under %s",
			bit(p.Info.PartitionEnforcementInbound), bit(p.Info.PartitionEnforcementOutbound), before)
	}
}

func (a *auditor) pkeyViolations() {
	for _, list := range [][]*observed.Port{a.f.EndPorts(), a.leaves()} {
		for _, p := range list {
			a.counter(p, "P_KeyViolations", func(i *smp.PortInfo) uint16 { return i.PKeyViolations })
		}
	}
}

func (a *auditor) notWell() {
	for _, p := range a.f.EndPorts() {
		d := p.Diagnosis()
		if !a.info(p) || d.Code.IsReady() {
			continue
		}
		said := fmt.Sprintf("DiagCode 0x%04x: %s", uint16(d.Code), d.Code.Meaning())
		if code, ok := d.Code.VendorCode(); ok {
			said += fmt.Sprintf(", vendor code 0x%03x", code)
		}
		for i := range d.Blocks {
			b := &d.Blocks[i]
			said += fmt.Sprintf(", VendorDiag[%d] %x", b.Index, bytes.TrimRight(b.DiagData[:], "\x00"))
		}
		if d.Missing {
			a.unknown(place(p), "VendorDiag block %d was not read", d.Next)
		} else if ends := d.Ends(); ends != "" {
			said += ", the chain " + ends
		}
		a.found(place(p), "%s", said)
	}
}

func (a *auditor) notRead() {
	for _, u := range a.options.Unread {
		a.unknown(u.Where, "%s", u.What)
	}
	for _, p := range a.f.EndPorts() {
		a.info(p)
		a.entries(p)
	}
	for _, p := range a.external() {
		if a.switchInfo(p.Node) && a.info(p) && p.FacesStranger() {
			a.unknown(place(p), "the link is up, and the device behind it did not answer")
		}
		if p.FacesEnd() {
			a.entries(p)
		}
	}
	if o := &a.options; o.MaxAge > 0 && o.Age > o.MaxAge {
		a.unknown("the reading", "it is %s old, at most %s is allowed", o.Age.Round(time.Second), o.MaxAge)
	}
}
