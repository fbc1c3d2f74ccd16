// Package readonly watches a fabric that others manage: it audits it again and again, says
// what is new and what is gone, and tells systemd and Prometheus. It writes nothing to the
// fabric, whatever it finds; what reads the fabric is its caller's.
package readonly
