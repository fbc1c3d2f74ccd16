package ibsimtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Tools are the programs that the comparison needs, as paths.
type Tools struct {
	Ibsim, OpenSM, SMPQuery, SAQuery, Ibnetdiscover string
	// Umad2sim is the library that leads a program's umad calls to ibsim.
	Umad2sim string
}

// FindTools finds the programs. The error names the first that is missing and
// the Debian package that has it.
func FindTools() (*Tools, error) {
	var t Tools
	for _, p := range []struct {
		path          *string
		name, debians string
	}{
		{&t.Ibsim, "ibsim", "ibsim-utils"},
		{&t.OpenSM, "opensm", "opensm"},
		{&t.SMPQuery, "smpquery", "infiniband-diags"},
		{&t.SAQuery, "saquery", "infiniband-diags"},
		{&t.Ibnetdiscover, "ibnetdiscover", "infiniband-diags"},
	} {
		if *p.path = findProgram(p.name); *p.path == "" {
			return nil, fmt.Errorf("%s is not installed (Debian package %s)", p.name, p.debians)
		}
	}
	for _, pattern := range []string{"/usr/lib/*/umad2sim/libumad2sim.so*", "/usr/lib*/umad2sim/libumad2sim.so*"} {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			t.Umad2sim = found[0]
			return &t, nil
		}
	}
	return nil, fmt.Errorf("libumad2sim.so is not installed (Debian package libumad2sim0)")
}

// findProgram also looks where the path of an ordinary user does not lead.
func findProgram(name string) string {
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}
