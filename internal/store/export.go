package store

import (
	"bufio"
	"fmt"
	"io"
	"iter"
)

// Export writes audit entries as JSON lines, oldest first, and returns how many.
func Export(w io.Writer, entries iter.Seq2[Entry, error]) (count uint64, err error) {
	out := bufio.NewWriter(w)
	for e, err := range entries {
		if err != nil {
			return count, err
		}
		if _, err := out.Write(append(e.Line(), '\n')); err != nil {
			return count, err
		}
		count++
	}
	return count, out.Flush()
}

// ReadExport yields the entries of what Export wrote, and an error that names the line.
func ReadExport(r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, MaxLine+1)
		n := 0
		for lines.Scan() {
			n++
			e, err := ParseEntry(lines.Bytes())
			if err != nil {
				err = fmt.Errorf("line %d: %w", n, err)
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Entry{}, fmt.Errorf("line %d: %w", n+1, err))
		}
	}
}
