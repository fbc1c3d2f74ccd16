package ibsimtest

import (
	"os/exec"
	"syscall"
)

// EndWithThis makes a process end with this one.
func EndWithThis(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
