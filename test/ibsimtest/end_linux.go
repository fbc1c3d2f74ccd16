package ibsimtest

import (
	"os/exec"
	"syscall"
)

// endWithThis makes a process end with this one.
func endWithThis(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
