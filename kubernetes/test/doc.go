// Package kubetest runs the controller, as the program that is shipped, between a real
// Kubernetes API server with a real etcd and a real ibwarden service that manages the
// demonstration fabric.
package kubetest
