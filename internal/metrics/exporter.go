package metrics

import (
	"strings"

	"github.com/ibwarden/ibwarden/internal/perfmgr"
)

// counterNames has the middle of each counter's metric name, its unit and its meaning.
var counterNames = [perfmgr.Counters]struct{ name, unit, help string }{
	perfmgr.PortXmitData:                 {"transmit_data_bytes", "bytes", "Bytes sent"},
	perfmgr.PortRcvData:                  {"receive_data_bytes", "bytes", "Bytes received"},
	perfmgr.PortXmitPkts:                 {"transmit_packets", "packets", "Packets sent"},
	perfmgr.PortRcvPkts:                  {"receive_packets", "packets", "Packets received"},
	perfmgr.PortUnicastXmitPkts:          {"unicast_transmit_packets", "packets", "Unicast packets sent"},
	perfmgr.PortUnicastRcvPkts:           {"unicast_receive_packets", "packets", "Unicast packets received"},
	perfmgr.PortMulticastXmitPkts:        {"multicast_transmit_packets", "packets", "Multicast packets sent"},
	perfmgr.PortMulticastRcvPkts:         {"multicast_receive_packets", "packets", "Multicast packets received"},
	perfmgr.SymbolErrorCounter:           {"symbol_error", "", "Minor link errors on the lanes"},
	perfmgr.LinkErrorRecoveryCounter:     {"link_error_recovery", "", "Successful recoveries of the link"},
	perfmgr.LinkDownedCounter:            {"link_downed", "", "Failed recoveries that took the link down"},
	perfmgr.PortRcvErrors:                {"receive_errors", "packets", "Packets received with an error"},
	perfmgr.PortRcvRemotePhysicalErrors:  {"receive_remote_physical_errors", "packets", "Packets received with the end delimiter for bad packets"},
	perfmgr.PortRcvSwitchRelayErrors:     {"receive_switch_relay_errors", "packets", "Packets that the switch could not forward"},
	perfmgr.PortXmitDiscards:             {"transmit_discards", "packets", "Packets discarded because the port was down or congested"},
	perfmgr.PortXmitConstraintErrors:     {"transmit_constraint_errors", "packets", "Packets not sent because of partition enforcement or a raw filter"},
	perfmgr.PortRcvConstraintErrors:      {"receive_constraint_errors", "packets", "Packets discarded on arrival because of partition enforcement or a raw filter"},
	perfmgr.LocalLinkIntegrityErrors:     {"local_link_integrity_errors", "", "Times that the local physical errors exceeded their threshold"},
	perfmgr.ExcessiveBufferOverrunErrors: {"excessive_buffer_overrun_errors", "", "Times that buffer overruns exceeded their threshold"},
	perfmgr.VL15Dropped:                  {"vl15_dropped", "packets", "Packets dropped on virtual lane 15 for lack of buffers"},
	perfmgr.PortXmitWait:                 {"transmit_wait", "ticks", "Ticks in which the port had data to send and could not"},
	perfmgr.QP1Dropped:                   {"qp1_dropped", "packets", "Packets dropped at queue pair 1"},
	perfmgr.PortLocalPhysicalErrors:      {"local_physical_errors", "packets", "Packets with physical errors on this link"},
	perfmgr.PortMalformedPacketErrors:    {"malformed_packet_errors", "packets", "Malformed packets received"},
	perfmgr.PortBufferOverrunErrors:      {"buffer_overrun_errors", "packets", "Packets discarded because a buffer overran"},
	perfmgr.PortDLIDMappingErrors:        {"dli_mapping_errors", "packets", "Packets whose DLID could not be mapped"},
	perfmgr.PortVLMappingErrors:          {"vl_mapping_errors", "packets", "Packets whose virtual lane could not be mapped"},
	perfmgr.PortLoopingErrors:            {"looping_errors", "packets", "Packets that would have left by the port on which they arrived"},
}

// family has the metrics of switches, or those of CAs.
type family struct {
	counters                    [perfmgr.Counters]*Metric
	info, uplink, rate, rawRate *Metric
	failed, timedOut            *Metric
	device, collector           string // its kind, here and in infiniband_exporter
}

func newFamily(device, kind, what string) *family {
	f := &family{device: device, collector: kind}
	counter, gauge := written(counter), written(gauge)
	prefix := "infiniband_" + kind + "_"
	for c, x := range counterNames {
		f.counters[c] = counter(prefix+"port_"+x.name+"_total", x.unit, x.help+" ("+perfmgr.Counter(c).String()+"), at a port of a "+strings.TrimSuffix(what, " port")+".", "guid", "port")
	}
	f.info = gauge(prefix+"info", "", "Always 1; the description and the LID of a "+what+".", "guid", kind, "lid")
	f.uplink = gauge(prefix+"uplink_info", "", "Always 1; what a port of a "+strings.TrimSuffix(what, " port")+" is connected to.", "guid", "port", kind, "uplink", "uplink_guid", "uplink_type", "uplink_port", "uplink_lid")
	if kind == "switch" {
		f.rate = gauge(prefix+"port_rate_bytes_per_second", "bytes per second", "Data rate of the link of a port of a "+what+", without the line code.", "guid", "port")
		f.rawRate = gauge(prefix+"port_raw_rate_bytes_per_second", "bytes per second", "Signalling rate of the link of a port of a "+what+".", "guid", "port")
	} else {
		f.rate = gauge(prefix+"rate_bytes_per_second", "bytes per second", "Data rate of the link of a "+what+", without the line code.", "guid")
		f.rawRate = gauge(prefix+"raw_rate_bytes_per_second", "bytes per second", "Signalling rate of the link of a "+what+".", "guid")
	}
	f.failed = gauge(prefix+"collect_error", "", "1 if a "+what+" refused the last request for its counters, or answered nonsense.", "guid", "collector")
	f.timedOut = gauge(prefix+"collect_timeout", "", "1 if a "+what+" did not answer the last request for its counters.", "guid", "collector")
	return f
}

var (
	switchFamily = newFamily("SW", "switch", "switch")
	hcaFamily    = newFamily("CA", "hca", "CA port")
)

// Metrics of reading the counters, as alerts about the exporter know them.
var (
	collectErrors   = gauge("infiniband_exporter_collect_errors", "", "Devices that refused the last request for their counters, or answered nonsense.", "collector")
	collectTimeouts = gauge("infiniband_exporter_collect_timeouts", "", "Devices that did not answer the last request for their counters.", "collector")
)
