package umad

import (
	"io"
	"time"

	"github.com/ibwarden/ibwarden/ib"
)

// System is what a link needs of the machine. Errors of files are, or wrap,
// error numbers of the system.
type System interface {
	// Now counts from any origin and never goes back.
	Now() time.Duration
	// Sleep lets at most so much time pass.
	Sleep(d time.Duration)
	Devices() ([]Device, error)
	// PKeys is the P_Key table of a port, as far as it can be read.
	PKeys(*Port) []ib.PKey
	// OpenMAD opens a file of /dev/infiniband for reading and writing that
	// never waits.
	OpenMAD(name string) (File, error)
	// OpenIsSM holds the file until it is closed.
	OpenIsSM(name string) (io.Closer, error)
	// Holder is another program that has one of these files of /dev/infiniband, which
	// are the port's, open, if one is seen.
	Holder(at *Port, names ...string) (h Holder, some bool)
}

// File is an open umad file.
type File interface {
	io.ReadWriteCloser
	// Ioctl carries out a command on an argument, which it may change; nil for
	// a command without one.
	Ioctl(command uint32, argument []byte) error
	// Wait waits until there is something to read or time is up. The error is
	// EIO when the device is gone.
	Wait(d time.Duration) (readable bool, err error)
}
