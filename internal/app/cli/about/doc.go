// Package about says what program this is: out of what the Go linker wrote into
// it come its version, the commit and time that it was built from, whether the
// tree had changes, and the compiler. What was not written is empty. Nothing is
// read but the program itself.
package about
