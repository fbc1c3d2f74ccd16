// Package tenanttest has a second opinion on what tenants may do and see: a naive
// model of tenants, ports, partitions and consents, which shares no rule with
// internal/resource, only its types. The tests make random calls of both and compare
// every answer, which port gets which key, and what every tenant sees.
package tenanttest
