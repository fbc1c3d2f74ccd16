// Package packagetest builds the Debian package, installs it below a directory
// of its own and holds it, and the systemd unit in it, against what they
// promise. It contains nothing but tests. They want dpkg and systemd-analyze:
// without them they skip, and fail when CI=true.
package packagetest
