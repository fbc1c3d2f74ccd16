package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// DataDir is the directory in which a manager keeps what it may not forget. Only
// its owner can use it; the empty DataDir keeps nothing.
type DataDir string

// DataVariable names the directory when no flag does.
const DataVariable = "IBWARDEN_DATA"

// systemData is where root keeps data.
const systemData = "/var/lib/ibwarden"

// DefaultDataDir is the directory for a fabric when no flag names one: that of
// IBWARDEN_DATA, and for the adapters of this machine /var/lib/ibwarden, or what
// is the user's own for such things. A simulated fabric has none.
func DefaultDataDir(fabric string) (DataDir, error) {
	if dir := os.Getenv(DataVariable); dir != "" {
		return DataDir(dir), nil
	}
	if fabric != "umad" && !strings.HasPrefix(fabric, "umad:") {
		return "", nil
	}
	if os.Geteuid() == 0 {
		return systemData, nil
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return DataDir(filepath.Join(dir, "ibwarden")), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("a data directory: %w: want --data DIR or %s", err, DataVariable)
	}
	return DataDir(filepath.Join(home, ".local", "state", "ibwarden")), nil
}

// OpenDataDir makes the directory if it is not there. One that others can use is
// an error: what is in it would be theirs.
func OpenDataDir(path string) (DataDir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("data: %w", err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return "", fmt.Errorf("data: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("data %s: want a directory", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("data %s: others can use it (mode %04o): want 0700", path, info.Mode().Perm())
	}
	return DataDir(path), nil
}

// File is the path of a file in the directory.
func (d DataDir) File(name string) string { return filepath.Join(string(d), name) }

// cablesFile is the list of cables in a data directory.
const cablesFile = "cables.topology"

// State is where what was assigned is kept.
func (d DataDir) State() string { return d.File("state.json") }

// Cables is the path of the list of cables.
func (d DataDir) Cables() string { return d.File(cablesFile) }

// LoadCables reads the list of cables of a directory; nil when there is none yet.
func (d DataDir) LoadCables() (*cables.List, error) {
	if d == "" {
		return nil, nil
	}
	l, err := LoadCables(d.Cables())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return l, err
}

// LoadCables reads a list of cables from a topology file.
func LoadCables(path string) (*cables.List, error) {
	data, err := files.Read(path, topology.FileSizeMax)
	if err != nil {
		return nil, fmt.Errorf("cables: %w", err)
	}
	l, err := cables.Read(data, path)
	if err != nil {
		return nil, fmt.Errorf("cables: %w", err)
	}
	return l, nil
}

// SaveCables replaces the file as a whole.
func SaveCables(path string, l *cables.List) error {
	if err := files.Replace(path, l.Write); err != nil {
		return fmt.Errorf("cables %s: %w", path, err)
	}
	return nil
}
