//go:build !linux

package ibsimtest

import "os/exec"

// EndWithThis does nothing: only Linux ends a process with its parent. The tests
// that would start one need ibsim, which is Linux's too.
func EndWithThis(*exec.Cmd) {}
