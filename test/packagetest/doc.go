// Package packagetest builds the Debian package, installs it into a directory
// and checks its content and the systemd unit in it. It contains only tests. They need
// dpkg and systemd-analyze: without them they skip, or fail when CI=true.
package packagetest
