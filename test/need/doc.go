// Package need is what tests say that need what a machine may lack: programs
// of other projects, FUSE, namespaces. Without it they skip, and say so; in CI
// (CI=true in the environment) they fail. Nothing but tests uses it.
package need
