package past

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/files"
)

// fileMost is the most bytes of a file that is read.
const fileMost = BytesMax

// file has pieces, one after the other.
type file struct {
	path   string
	size   int64
	count  int    // pieces that were written to it
	held   int    // of them, those that are kept
	whole  int64  // where the last piece is that has a matrix
	matrix []byte // which it is
	file   *os.File
}

func (f *file) leave() {
	if f != nil {
		f.held--
	}
}

// entry is where a period is.
type entry struct {
	from  int64
	state views.PastState
	data  []byte // of a level in memory
	file  *file
	at    int64 // of the piece in the file
	size  int
	whole int64 // of the piece that has the matrix
}

// read reads a period, with its matrix.
func (e *entry) read() (*piece, error) {
	if e.data != nil {
		return open(e.data)
	}
	f, err := os.Open(e.file.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at := func(at int64, size int) (*piece, error) {
		data := make([]byte, size)
		if _, err := f.ReadAt(data, at); err != nil {
			return nil, err
		}
		return open(data)
	}
	p, err := at(e.at, e.size)
	if err == nil && e.whole != e.at {
		var first *piece
		if first, err = at(e.whole, int(min(pieceMost, e.file.size-e.whole))); err == nil {
			p.matrix = first.matrix
		}
	}
	return p, err
}

// open reads a piece, and its load.
func open(data []byte) (*piece, error) {
	p, _, _, err := decode(data)
	if err == nil {
		p.load, err = inflate(p.load, cablesMost)
	}
	return p, err
}

// append writes a period that is over.
func (k *Keeper) append(l *level, p *piece) error {
	if l.file != nil && l.file.count >= l.inFile {
		l.file.file.Close()
		l.file = nil
	}
	whole := l.file == nil || !slices.Equal(l.file.matrix, p.matrix)
	data := p.encode(whole)
	if err := k.makeRoom(int64(len(data))); err != nil {
		return err
	}
	if l.file == nil {
		f, err := os.OpenFile(filepath.Join(k.dir, fmt.Sprintf("%016x.%s", k.next, l.name)), os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
		if err != nil {
			return err
		}
		l.file = &file{path: f.Name(), file: f}
		k.files = append(k.files, l.file)
		k.next++
	}
	n, err := l.file.file.Write(data)
	at := l.file.size
	l.file.size += int64(n)
	k.bytes += int64(n)
	if err = cmp.Or(err, l.file.file.Sync()); err != nil { // the next begins another file
		l.file.file.Close()
		l.file = nil
		return errors.Join(err, k.sweep())
	}
	l.enter(l.file, p, at, len(data), whole)
	return nil
}

// enter lists a piece of a file.
func (l *level) enter(f *file, p *piece, at int64, size int, whole bool) {
	if whole {
		f.whole, f.matrix = at, p.matrix
	}
	f.count++
	f.held++
	l.put(entry{from: p.from, state: p.state, file: f, at: at, size: size, whole: f.whole})
}

// makeRoom removes files, the oldest first, until there is room for so many bytes.
func (k *Keeper) makeRoom(bytes int64) error {
	for k.bytes+bytes > BytesMax {
		var oldest *level
		for _, l := range k.levels {
			if l.inFile > 0 && len(l.entries) > 0 && (oldest == nil || l.entries[0].from < oldest.entries[0].from) {
				oldest = l
			}
		}
		if oldest == nil {
			return errors.New("there is no room for what the fabric is like") // a piece has less than pieceMost
		}
		if oldest.entries[0].file == oldest.file { // the next begins another
			oldest.file.file.Close()
			oldest.file = nil
		}
		first := oldest.entries[0].file
		if err := k.drop(oldest, func(e *entry) bool { return e.file == first }); err != nil {
			return err
		}
	}
	return nil
}

// forget removes what is older than a level keeps.
func (k *Keeper) forget(l *level, now time.Time) {
	before := now.Add(-l.age).Unix() - l.seconds()
	_ = k.drop(l, func(e *entry) bool { return e.from < before }) // what is left is tried again by makeRoom
}

// drop drops the first entries of a level.
func (k *Keeper) drop(l *level, is func(*entry) bool) error {
	n := 0
	for ; n < len(l.entries) && is(&l.entries[n]); n++ {
		l.entries[n].file.leave()
	}
	if n == 0 {
		return nil
	}
	l.entries = slices.Delete(l.entries, 0, n)
	return k.sweep()
}

// sweep removes the files of which nothing is kept.
func (k *Keeper) sweep() (err error) {
	k.files = slices.DeleteFunc(k.files, func(f *file) bool {
		if f.held > 0 || slices.ContainsFunc(k.levels, func(l *level) bool { return l.file == f }) {
			return false
		}
		err = errors.Join(err, os.Remove(f.path))
		k.bytes -= f.size
		return true
	})
	return err
}

// readFiles lists the pieces of all files; without good, it removes them.
func (k *Keeper) readFiles(good bool) (err error) {
	list, err := os.ReadDir(k.dir) // by name, which is by number
	for _, x := range list {
		var number uint64
		name, kind, _ := strings.Cut(x.Name(), ".")
		i := slices.IndexFunc(k.levels, func(l *level) bool { return l.inFile > 0 && l.name == kind })
		if _, e := fmt.Sscanf(name, "%016x", &number); i < 0 || e != nil {
			continue
		}
		k.next = max(k.next, number+1)
		f := &file{path: filepath.Join(k.dir, x.Name())}
		if good {
			err = errors.Join(err, k.readFile(k.levels[i], f))
		}
		k.files = append(k.files, f)
	}
	return errors.Join(err, k.sweep(), k.makeRoom(0))
}

// readFile lists the pieces of a file, up to the first that is torn.
func (k *Keeper) readFile(l *level, f *file) error {
	data, err := files.Read(f.path, fileMost)
	f.size = int64(len(data))
	k.bytes += f.size
	for at := int64(0); err == nil && at < f.size; {
		p, size, same, e := decode(data[at:])
		if e != nil || same && f.count == 0 {
			break
		}
		p.matrix = nil // the next file begins with one
		l.enter(f, p, at, size, !same)
		at += int64(size)
	}
	return err
}
