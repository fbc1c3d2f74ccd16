//go:build !linux

package etcd

import "syscall"

func endsWithParent() *syscall.SysProcAttr { return nil }
