// Package need skips a test when the machine lacks what it needs: programs
// of other projects, FUSE, namespaces. In CI
// (CI=true in the environment) such a test fails instead. Only tests use it.
package need
