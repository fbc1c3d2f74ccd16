// Package need has what many tests need: programs of other projects, axe-core, FUSE, namespaces
// (without them a test is skipped, and in CI, with CI=true in the environment, it fails),
// ibwarden itself, built once, and the length and the seed of random tests. Only tests
// use it.
package need
