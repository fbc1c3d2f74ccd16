package cli

import (
	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/engine"
)

// managerOf is the port of a manager; 0 before it knows it.
func managerOf(e *engine.Engine) ib.PortGUID {
	if f := e.Fabric(); f != nil && f.Self != nil {
		return f.Self.GUID
	}
	return 0
}

// recall reads the state file again: a manager that shares it may have written it since.
func (f *runFlags) recall() (k daemon.Kept, err error) {
	if k.Assigned, err = daemon.LoadState(f.state); err == nil {
		k.Registered, _, err = daemon.LoadRegistered(f.state, f.parsedSAKey)
	}
	return k, err
}
