package umad

import (
	"io"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/umad"
)

// System is what a link needs of the machine. Errors of files are, or wrap,
// error numbers of the system.
type System interface {
	// Now counts from any origin and never goes back.
	Now() time.Duration
	// Sleep lets at most so much time pass.
	Sleep(d time.Duration)
	Devices() ([]umad.Device, error)
	// PKeys is the P_Key table of a port, as far as it can be read.
	PKeys(*umad.Port) []ib.PKey
	// OpenMAD opens a file of /dev/infiniband for reading and writing that
	// never waits.
	OpenMAD(name string) (umad.File, error)
	// OpenIsSM holds the file until it is closed.
	OpenIsSM(name string) (io.Closer, error)
	// Holder is another program that has one of these files of /dev/infiniband, which
	// are the port's, open, if one is seen.
	Holder(at *umad.Port, names ...string) (h Holder, some bool)
}

// Machine is a real machine.
type Machine struct {
	root   string
	origin time.Time
}

// NewMachine is the machine whose /sys and /dev are below root, "/" usually.
func NewMachine(root string) *Machine { return &Machine{root, time.Now()} }

// Now counts from the making of m.
func (m *Machine) Now() time.Duration { return time.Since(m.origin) }

// Sleep sleeps.
func (m *Machine) Sleep(d time.Duration) { time.Sleep(d) }

// Devices lists the adapters.
func (m *Machine) Devices() ([]umad.Device, error) { return umad.Devices(m.root) }

// PKeys is the P_Key table of a port.
func (m *Machine) PKeys(p *umad.Port) []ib.PKey { return umad.PKeys(m.root, p) }

// OpenMAD opens a umad file.
func (m *Machine) OpenMAD(name string) (umad.File, error) { return umad.OpenFile(m.root, name) }

// OpenIsSM opens an issm file.
func (m *Machine) OpenIsSM(name string) (io.Closer, error) { return umad.OpenIsSM(m.root, name) }
