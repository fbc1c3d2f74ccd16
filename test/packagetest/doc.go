// Package packagetest builds what people install, twice and in two directories, installs the
// Debian and the RPM package into directories, runs the container image, and checks their
// content, the systemd unit in them, and what lintian, rpmlint and mandoc say. It also boots
// a Debian under systemd-nspawn, without a network, and installs, upgrades and removes the
// packages there (TestHost...; scripts/install-root makes that Debian). It contains
// only tests. They need those programs, dpkg and systemd-analyze: without them they skip, or
// fail when CI=true.
package packagetest
