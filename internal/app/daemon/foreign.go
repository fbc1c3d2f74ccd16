package daemon

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Names of files that OpenSM keeps in its cache directory, and that ibdiagnet
// takes from the directory of its option --security_keys.
const (
	guid2mkey = "guid2mkey"
	neighbors = "neighbors"
	guid2lid  = "guid2lid"
)

// foreignMax is the most bytes of such a file.
const foreignMax = 64 << 20

// fields reads lines of two words, or three; empty lines count for nothing.
func fields(path string, n int, yield func(words []string) error) error {
	data, err := files.Read(path, foreignMax)
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for number := 1; lines.Scan(); number++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 {
			continue
		}
		err := fmt.Errorf("want %d words", n)
		if len(words) == n {
			err = yield(words)
		}
		if err != nil { // the line is not shown: it may have a key
			return fmt.Errorf("%s, line %d: %w", path, number, err)
		}
	}
	return lines.Err()
}

// readGUID2MKey reads keys of ports by their GUIDs: lines of two numbers.
func readGUID2MKey(path string) (map[ib.PortGUID]ib.MKey, error) {
	out := make(map[ib.PortGUID]ib.MKey)
	err := fields(path, 2, func(words []string) error {
		g, err := ib.ParsePortGUID(words[0])
		key, e := strconv.ParseUint(words[1], 0, 64)
		if err != nil || e != nil {
			return errors.New("want the GUID of a port and its M_Key")
		}
		if key != 0 {
			out[g] = ib.MKey(key)
		}
		return nil
	})
	return out, err
}

// readNeighbors reads which port is cabled to which: lines of two ports, each a
// port GUID, a colon and a number. A switch port goes by the GUID of port 0.
func readNeighbors(path string) (map[mkey.PortOf]ib.PortGUID, error) {
	out := make(map[mkey.PortOf]ib.PortGUID)
	err := fields(path, 2, func(words []string) error {
		var ends [2]ib.PortGUID
		var nums [2]uint64
		for i, w := range words {
			guid, num, ok := strings.Cut(w, ":")
			g, err := ib.ParsePortGUID(guid)
			n, e := strconv.ParseUint(num, 10, 8)
			if !ok || err != nil || e != nil {
				return errors.New("want two ports, each a GUID, a colon and a number")
			}
			ends[i], nums[i] = g, n
		}
		out[mkey.PortOf{GUID: ends[0], Port: ib.PortNum(nums[0])}] = ends[1]
		out[mkey.PortOf{GUID: ends[1], Port: ib.PortNum(nums[1])}] = ends[0]
		return nil
	})
	return out, err
}

// foreignPrefix begins the names of the files in which keys of another manager
// are kept until they are replaced.
const foreignPrefix = "foreign-"

// ImportForeign takes over the keys of another manager: they are tried, and
// replaced. neighbors may be empty.
func (d DataDir) ImportForeign(keys, cabling string) (ports int, err error) {
	of, err := readGUID2MKey(keys)
	if err != nil {
		return 0, err
	}
	err = files.Replace(d.File(foreignPrefix+guid2mkey), func(w io.Writer) error { return writeMKeys(w, of) })
	if err != nil || cabling == "" {
		return len(of), err
	}
	if _, err := readNeighbors(cabling); err != nil {
		return 0, err
	}
	data, err := files.Read(cabling, foreignMax)
	if err == nil {
		err = files.Replace(d.File(foreignPrefix+neighbors), files.Bytes(data))
	}
	return len(of), err
}

// loadForeign reads what ImportForeign kept.
func (d DataDir) loadForeign() (f mkey.Foreign, err error) {
	if f.Of, err = readGUID2MKey(d.File(foreignPrefix + guid2mkey)); errors.Is(err, fs.ErrNotExist) {
		return mkey.Foreign{}, nil
	}
	if err == nil {
		f.Neighbor, err = readNeighbors(d.File(foreignPrefix + neighbors))
	}
	if errors.Is(err, fs.ErrNotExist) {
		f.Neighbor, err = nil, nil
	}
	return f, err
}

// DropForeign forgets the keys of another manager, once none is in force.
func (k *Keyring) DropForeign() error {
	if !k.Foreign.Any() || !k.Keeps() {
		return nil
	}
	k.Foreign = mkey.Foreign{}
	err := os.Remove(k.dir.File(foreignPrefix + guid2mkey))
	if e := os.Remove(k.dir.File(foreignPrefix + neighbors)); err == nil && !errors.Is(e, fs.ErrNotExist) {
		err = e
	}
	return err
}

func writeMKeys(w io.Writer, of map[ib.PortGUID]ib.MKey) error {
	for _, g := range slices.Sorted(maps.Keys(of)) {
		if _, err := fmt.Fprintf(w, "%v %v\n\n", g, of[g]); err != nil {
			return err
		}
	}
	return nil
}

// ExportKeys writes the keys in force in a subnet that was read with them, its
// cables and its LIDs, as OpenSM keeps them and ibdiagnet reads them. The
// directory is its owner's only.
func ExportKeys(path string, f *observed.Fabric) (ports int, err error) {
	dir, err := OpenDataDir(path)
	if err != nil {
		return 0, err
	}
	of := make(map[ib.PortGUID]ib.MKey)
	var cabling, lids strings.Builder
	for _, p := range f.EndPorts() {
		if p.Key != 0 {
			of[p.GUID] = p.Key
		}
		if p.InfoRead && p.Info.LID != 0 {
			last := uint32(p.Info.LID) + 1<<p.Info.LMC - 1
			fmt.Fprintf(&lids, "%v 0x%04x 0x%04x\n\n", p.GUID, uint32(p.Info.LID), last)
		}
	}
	for _, l := range f.Links() {
		for _, ends := range [][2]*observed.Port{{l.A, l.B}, {l.B, l.A}} {
			fmt.Fprintf(&cabling, "%v:%d %v:%d\n\n", ends[0].Agent().GUID, ends[0].Num, ends[1].Agent().GUID, ends[1].Num)
		}
	}
	err = files.Replace(dir.File(guid2mkey), func(w io.Writer) error { return writeMKeys(w, of) })
	for name, text := range map[string]string{neighbors: cabling.String(), guid2lid: lids.String()} {
		if err == nil {
			err = files.Replace(dir.File(name), files.Bytes([]byte(text)))
		}
	}
	return len(of), err
}
