package files

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/judge/shadow"
)

var start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func round(at time.Time) []shadow.Record {
	return []shadow.Record{{At: at, Round: &shadow.Round{Complete: true, Reads: 1}}}
}

// opens are the records that a file begins with: one exposure.
func opens() []shadow.Record {
	return []shadow.Record{{At: start, Span: &shadow.Span{Fact: shadow.Fact{Kind: shadow.AbsentName, Text: "x"}, Began: start}}}
}

func openShadow(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := OpenShadow(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// read gives how many rounds and spans there are, and the damage.
func read(t *testing.T, dir string, since time.Time) (rounds, spans, damaged int) {
	t.Helper()
	records, damaged, err := ReadShadow(dir, since)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if r.Round != nil {
			rounds++
		} else {
			spans++
		}
	}
	return rounds, spans, damaged
}

// TestBounds: a day has a file that begins with what is openShadow, and can be read without those before;
// files that are too old go, and the oldest of those that are too large together.
func TestBounds(t *testing.T) {
	for name, size := range map[string]int64{"days": 1, "bytes": FileMax} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openShadow(t, dir)
			for day := range Days + 5 {
				file := filepath.Join(dir, start.AddDate(0, 0, day-Days-5).Format(nameLayout))
				if err := os.WriteFile(file, []byte("\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Truncate(file, size); err != nil { // of zeros
					t.Fatal(err)
				}
			}
			for hour := range 3 {
				if err := s.Append(start.Add(time.Duration(hour)*time.Hour), round(start), opens); err != nil {
					t.Fatal(err)
				}
			}
			if rounds, spans, damaged := read(t, dir, start.Add(time.Second)); rounds != 3 || spans != 1 || damaged != 0 {
				t.Errorf("of the last day: %d rounds, %d spans, %d damaged", rounds, spans, damaged)
			}
			list, err := list(dir)
			if err != nil {
				t.Fatal(err)
			}
			if want := min(Days+1, (BytesMax-2*FileMax)/size+1); len(list) != int(want) || !list[len(list)-1].begun.Equal(start) {
				t.Errorf("%d files, the last of %v; want %d", len(list), list[len(list)-1].begun, want)
			}
		})
	}
}

// TestCrash: what a crash leaves of a line costs that line only, also where the next process
// writes to the same file.
func TestCrash(t *testing.T) {
	dir := t.TempDir()
	s := openShadow(t, dir)
	if err := s.Append(start, round(start), opens); err != nil {
		t.Fatal(err)
	}
	s.Close()
	name := filepath.Join(dir, start.Format(nameLayout))
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"at":"2026-01-01T`); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if err := openShadow(t, dir).Append(start, round(start), opens); err != nil {
		t.Fatal(err)
	}
	if rounds, spans, damaged := read(t, dir, start); rounds != 2 || spans != 2 || damaged != 1 {
		t.Errorf("%d rounds, %d spans, %d damaged", rounds, spans, damaged)
	}
}

// TestOneWrites: a second process is refused while the first writes; a write that failed is made
// up for by the next.
func TestOneWrites(t *testing.T) {
	dir := t.TempDir()
	s := openShadow(t, dir)
	if _, err := OpenShadow(dir); err == nil || !strings.Contains(err.Error(), "one at a time") {
		t.Errorf("a second one: %v", err)
	}
	if err := s.Append(start, round(start), opens); err != nil {
		t.Fatal(err)
	}
	s.file.Close() // nothing can be written to it
	if err := s.Append(start, round(start), opens); err == nil {
		t.Fatal("no error")
	}
	if err := s.Append(start.AddDate(0, 0, 1), round(start), opens); err != nil {
		t.Fatal(err)
	}
	if rounds, _, damaged := read(t, dir, time.Time{}); rounds != 3 || damaged != 0 {
		t.Errorf("%d rounds, %d damaged", rounds, damaged)
	}
}
