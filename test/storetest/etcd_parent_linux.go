package storetest

import "syscall"

// endsWithParent: a member does not outlive a test that is killed.
func endsWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
