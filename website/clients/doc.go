// Package clients has no code of its own: its tests generate clients for the service from
// docs/openapi.json, in Go with oapi-codegen and in TypeScript with openapi-typescript, and run the
// programs in testdata with them against a service.
package clients
