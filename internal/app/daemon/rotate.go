package daemon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

const (
	lockFile   = "lock"
	rotateFile = "rotate.json"
	// rotateMax is the most bytes of a request, lockMax of a lock.
	rotateMax, lockMax = 16 << 20, 64
)

// ErrInUse says that a manager runs on a data directory.
var ErrInUse = errors.New("a manager runs on it")

// Lock keeps other managers from a data directory until the process ends, or
// unlock is called.
func (d DataDir) Lock() (unlock func(), err error) {
	f, err := os.OpenFile(d.File(lockFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("data %s: %w (process %d)", d, ErrInUse, d.owner())
	}
	if err = f.Truncate(0); err == nil {
		_, err = fmt.Fprintf(f, "%d\n", os.Getpid())
	}
	if err != nil && !files.IsFull(err) { // it is locked; only whose it is cannot be read
		f.Close()
		return nil, fmt.Errorf("data: %w", err)
	}
	return func() { f.Close() }, nil
}

// owner is the process that wrote the lock last, 0 for none.
func (d DataDir) owner() int {
	data, _ := files.Read(d.File(lockFile), lockMax)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}

// Rotation asks a manager for other M_Keys.
type Rotation struct {
	// Ports are the GUIDs of end ports; all when there are none.
	Ports []ib.PortGUID
}

// rotationForm is a Rotation as it is kept.
type rotationForm struct {
	Ports []string `json:"port_guids"`
}

// AskRotation leaves a request for the manager of a directory, and wakes it when
// there is one; else the next one finds the request.
func (d DataDir) AskRotation(r Rotation) (awake bool, err error) {
	f := rotationForm{Ports: []string{}}
	for _, g := range r.Ports {
		f.Ports = append(f.Ports, g.String())
	}
	data, err := json.Marshal(f)
	if err == nil {
		err = files.Replace(d.File(rotateFile), files.Bytes(append(data, '\n')))
	}
	if err != nil {
		return false, fmt.Errorf("data: %w", err)
	}
	unlock, err := d.Lock()
	if err == nil {
		unlock()
		return false, nil
	}
	if !errors.Is(err, ErrInUse) {
		return false, err
	}
	process, err := os.FindProcess(d.owner())
	if err == nil {
		err = process.Signal(syscall.SIGHUP)
	}
	return err == nil, err
}

// AskedRotation is the request that waits, nil when there is none.
func (k *Keyring) AskedRotation() (*Rotation, error) {
	if !k.Keeps() {
		return nil, nil
	}
	data, err := files.Read(k.dir.File(rotateFile), rotateMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var f rotationForm
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	r := new(Rotation)
	for i := 0; i < len(f.Ports) && err == nil; i++ {
		var g ib.PortGUID
		g, err = ib.ParsePortGUID(f.Ports[i])
		r.Ports = append(r.Ports, g)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.dir.File(rotateFile), err)
	}
	return r, nil
}

// Rotated ends a request: what it asked for is kept in the book.
func (k *Keyring) Rotated() error { return os.Remove(k.dir.File(rotateFile)) }
