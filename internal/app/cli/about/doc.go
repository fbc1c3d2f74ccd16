// Package about reports the version of this program from the build information of the
// Go linker: version, commit and its time, whether the tree was modified, and the
// compiler. A value that was not recorded is empty. It reads nothing but the
// program itself.
package about
