// Package metrics exports what the subnet manager knows to Prometheus.
//
//	Observer   counts events of the manager, in the goroutine that drives it
//	State      a copy of everything that is exported, made by that goroutine
//	Collector  turns the last State into samples, in any goroutine
//	WriteFabric  writes those of devices and ports, of which there may be very many
//	Store      counts what the store of the service does, in any goroutine
//	API        counts the requests of the API, in any goroutine
//	All        lists every metric; docs/metrics.md is made from it
//
// The metrics of the fabric have the names and labels of infiniband_exporter
// (infiniband_switch_*, infiniband_hca_*), so that the dashboards and alerts of sites
// that use it keep working; the metrics of the manager begin with ibwarden_.
//
// What is not known has no sample. Text from devices is valid UTF-8, without control
// characters and at most LabelMax bytes long, and a GUID that two ports claim has no
// samples: no device can break a scrape or appear as another one.
package metrics
