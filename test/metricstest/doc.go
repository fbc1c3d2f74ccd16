// Package metricstest checks the exported metrics against other programs: promtool,
// Prometheus, and samples that infiniband_exporter made of the same fabric.
package metricstest
