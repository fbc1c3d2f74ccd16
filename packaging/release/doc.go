// Command release builds what people install: Debian and RPM packages, a container
// image, archives of static programs, and with them a list of what is in the programs
// (an SBOM) and checksums. The same commit gives the same bytes, on any machine with the
// same version of Go: every time is that of the commit.
//
//	go run ./release [-o DIRECTORY] [-version VERSION] [-arch amd64,arm64] deb|rpm|image|archive|sbom|sums|all ...
//
// It needs Go and git. It runs no other program: packages are written by nfpm, images by
// go-containerregistry.
package main
