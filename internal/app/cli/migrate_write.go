package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/manager/desired"
	"github.com/ibwarden/ibwarden/internal/migrate/opensm"
)

// outputMode is that of a directory that is made.
const outputMode = 0o755

// write writes what was asked for, and returns the paths. Whether all of it may be written is
// looked at before anything is.
func (f *migrateCommand) write(output string, found *found, r *opensm.Report) ([]string, error) {
	written := []string{}
	if f.output == "" && f.data == "" {
		return written, nil
	}
	if r.Open && f.output != "" && !f.without {
		return nil, errors.New("there is no partitions.conf: under OpenSM every port is a full member of the default partition, and everybody reaches everybody; --without-partitions writes that policy, and nothing was written without it")
	}
	if r.BadKeys && f.data != "" {
		return nil, errors.New("guid2mkey or neighbors has lines that cannot be read (the report without --write-data names them): nothing was written")
	}
	type file struct {
		path string
		text []byte
	}
	var list []file
	if f.output != "" {
		list = append(list, file{filepath.Join(output, configFile), r.ConfigText()}, file{filepath.Join(output, policyFile), r.PolicyText()})
		if r.MKey != 0 {
			list = append(list, file{filepath.Join(output, mKeyFile), fmt.Appendf(nil, "0x%016x\n", r.MKey)})
		}
	}
	for _, x := range list {
		if err := f.mayWrite(x.path); err != nil {
			return nil, err
		}
	}
	if f.data != "" {
		if err := f.mayWrite(daemon.DataDir(f.data).State()); err != nil {
			return nil, err
		}
	}
	if f.output != "" {
		if err := os.MkdirAll(output, outputMode); err != nil {
			return nil, err
		}
	}
	for _, x := range list {
		if err := files.Replace(x.path, files.Bytes(x.text)); err != nil {
			return written, err
		}
		written = append(written, x.path)
	}
	if f.data == "" {
		return written, nil
	}
	data, err := f.writeData(found, r)
	return append(written, data...), err
}

// mayWrite refuses to replace what is there, and whatever is no regular file.
func (f *migrateCommand) mayWrite(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is there and is no regular file: nothing was written", path)
	case !f.force:
		return fmt.Errorf("%s is there: nothing was written (--force overwrites it)", path)
	}
	return nil
}

// writeData writes what OpenSM's cache becomes.
func (f *migrateCommand) writeData(found *found, r *opensm.Report) (written []string, err error) {
	dir, err := daemon.OpenDataDir(f.data)
	if err != nil {
		return nil, err
	}
	if len(r.LIDs) > 0 {
		a := desired.Assigned{LIDs: map[ib.PortGUID]ib.LID{}}
		for guid, lid := range r.LIDs {
			a.LIDs[ib.PortGUID(guid)] = ib.LID(lid)
		}
		if err := files.SaveStates(dir.State(), a, files.Registered{}); err != nil {
			return nil, err
		}
		written = append(written, dir.State())
	}
	keys, some := found.files[opensm.GUIDToMKey]
	if !some {
		return written, nil
	}
	if _, err := dir.ImportForeign(keys.Path, found.files[opensm.Neighbors].Path); err != nil {
		return written, err
	}
	return append(written, filepath.Join(string(dir), "foreign-guid2mkey")), nil
}
