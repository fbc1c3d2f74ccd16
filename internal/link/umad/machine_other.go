//go:build !linux

package umad

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// errLinuxOnly is what a machine without Linux says: the devices are the Linux
// kernel's.
var errLinuxOnly = fmt.Errorf("adapters are reached through Linux's /dev/infiniband/umadN, and this is %s: %w", runtime.GOOS, errors.ErrUnsupported)

// Machine is a machine that does not run Linux: every use of its devices is an
// error that says so.
type Machine struct{ origin time.Time }

// NewMachine is a machine without devices.
func NewMachine(string) *Machine { return &Machine{time.Now()} }

// Now counts from the making of m.
func (m *Machine) Now() time.Duration { return time.Since(m.origin) }

// Sleep sleeps.
func (m *Machine) Sleep(d time.Duration) { time.Sleep(d) }

// Devices is an error.
func (m *Machine) Devices() ([]Device, error) { return nil, errLinuxOnly }

// PKeys is empty.
func (m *Machine) PKeys(*Port) []ib.PKey { return nil }

// OpenMAD is an error.
func (m *Machine) OpenMAD(string) (File, error) { return nil, errLinuxOnly }

// OpenIsSM is an error.
func (m *Machine) OpenIsSM(string) (io.Closer, error) { return nil, errLinuxOnly }
