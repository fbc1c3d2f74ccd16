package past

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
)

const (
	// BytesMax is how many bytes the pieces in the directory take at most: the oldest go first. With 11,664 hosts
	// in three levels of switches (34,992 cables) of which each carries something else each time, 30 days take less.
	BytesMax = 64 << 20
	// Every is the time between two samples.
	Every = 10 * time.Second
	// recentAge is how long the short periods in memory are kept.
	recentAge = 10 * time.Minute
	// Age is how long anything is kept.
	Age = 30 * 24 * time.Hour
	// minuteAge is how long minutes are kept; before, quarters of an hour are.
	minuteAge = 24 * time.Hour
	// minutesInFile and quartersInFile are how many periods a file has: two hours, and a day.
	minutesInFile, quartersInFile = 120, 96
	// matrixMost is how many bytes the matrix of a piece takes at most, compressed; of a larger one none is kept.
	matrixMost = 64 << 10
)

// Sample is how the fabric is at a time.
type Sample struct {
	At     time.Time
	State  views.PastState
	Matrix *views.Matrix // as views.Matrix.Kept makes it; nil where it is not known
	Cables []views.CableShare
}

// Keeper keeps how a fabric was. Its methods may be called in any goroutine.
type Keeper struct {
	dir    string
	mu     sync.Mutex
	cables cables
	levels []*level // from the shortest periods to the longest
	files  []*file
	bytes  int64  // of them
	next   uint64 // number of the next file
}

// Open takes up what a directory has, and makes it where it is not there. The error may be about a part: the
// Keeper that is returned keeps what it can.
func Open(dir string) (*Keeper, error) {
	k := &Keeper{dir: dir, levels: []*level{
		{period: Every, age: recentAge},
		{name: "minute", period: time.Minute, age: minuteAge, inFile: minutesInFile},
		{name: "quarter", period: 15 * time.Minute, age: Age, inFile: quartersInFile},
	}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return k, err
	}
	err := k.cables.read(k.cablesFile())
	if err != nil { // pieces say nothing without it
		err = fmt.Errorf("%w: what cables carried in the past is lost", err)
	}
	return k, errors.Join(err, k.readFiles(err == nil), k.resume())
}

// resume makes the long period that was under way again, from the short ones in it.
func (k *Keeper) resume() error {
	minutes, quarters := k.levels[1], k.levels[2]
	if len(minutes.entries) == 0 {
		return nil
	}
	from := quarters.begins(minutes.entries[len(minutes.entries)-1].from)
	for _, e := range minutes.entries {
		if e.from < from {
			continue
		}
		p, err := e.read()
		if err != nil {
			return err
		}
		quarters.merge(from, p)
	}
	return nil
}

// Add enters how the fabric is. The error says what could not be kept.
func (k *Keeper) Add(s Sample) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	load, fresh := k.cables.enter(s.Cables, s.At)
	var err error
	if fresh { // before there is a piece that needs it
		err = k.cables.write(k.cablesFile())
	}
	for _, l := range k.levels { // what is later is of a clock that was wrong
		l.cut(s.At.Unix() + 1)
	}
	p := &piece{from: s.At.Unix(), state: s.State, matrix: matrixOf(s.Matrix), load: load}
	for _, l := range k.levels {
		from := l.begins(s.At.Unix())
		if l.open != nil && l.open.from != from {
			err = errors.Join(err, k.end(l))
		}
		l.merge(from, p)
		if l.inFile == 0 {
			l.put(entry{from: from, state: l.open.state, data: l.open.encode(true)})
		}
		k.forget(l, s.At)
	}
	return err
}

// Close closes the files that are appended to. What is added later begins others.
func (k *Keeper) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range k.levels {
		if l.file != nil {
			l.file.file.Close()
			l.file = nil
		}
	}
}

// end writes the period of a level that is over.
func (k *Keeper) end(l *level) error {
	p := l.open
	l.open = nil
	if l.inFile == 0 {
		return nil // is there
	}
	return k.append(l, p)
}

// Moments implements views.PastSource: of each time the shortest periods that there are.
func (k *Keeper) Moments() (out []views.PastPeriod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, l := range slices.Backward(k.levels) {
		until := int64(1<<63 - 1)
		for _, finer := range k.levels[:i] {
			if len(finer.entries) > 0 {
				until = min(until, finer.entries[0].from)
			}
		}
		for j := range l.entries {
			if e := &l.entries[j]; e.from < until {
				out = append(out, l.periodOf(e))
			}
		}
	}
	return out
}

// At implements views.PastSource.
func (k *Keeper) At(t time.Time) (*views.PastRecord, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var best *entry
	var of *level
	for _, l := range k.levels {
		e := l.at(t.Unix())
		if e == nil {
			continue
		}
		if best == nil || e.from > best.from && best.from+of.seconds() <= t.Unix() {
			best, of = e, l
		}
	}
	if best == nil {
		return nil, views.ErrOlder
	}
	p, err := best.read()
	if err != nil {
		return nil, err
	}
	matrix, err := readMatrix(p.matrix)
	return &views.PastRecord{PastPeriod: of.periodOf(best), State: p.state, Matrix: matrix, Cables: k.cables.shares(p.load)}, err
}

// level has periods of one length.
type level struct {
	name        string
	period, age time.Duration
	inFile      int     // periods in a file; 0 for a level in memory
	open        *piece  // the period that is under way; nil for none
	entries     []entry // those that are over, the oldest first
	file        *file   // that is appended to; nil for none
}

func (l *level) seconds() int64 { return int64(l.period / time.Second) }

// begins is when the period began that a time is in.
func (l *level) begins(at int64) int64 { return at - at%l.seconds() }

func (l *level) periodOf(e *entry) views.PastPeriod {
	return views.PastPeriod{From: time.Unix(e.from, 0).UTC(), Until: time.Unix(e.from, 0).Add(l.period).UTC(), Verdict: e.state.Verdict}
}

// at is the last period that began at a time or before; nil for none.
func (l *level) at(t int64) *entry {
	i, found := slices.BinarySearchFunc(l.entries, t, func(e entry, t int64) int { return cmp.Compare(e.from, t) })
	if !found {
		i--
	}
	if i < 0 {
		return nil
	}
	return &l.entries[i]
}

// cut removes the periods that begin at a time or later.
func (l *level) cut(from int64) {
	for n := len(l.entries); n > 0 && l.entries[n-1].from >= from; n-- {
		l.entries[n-1].file.leave()
		l.entries = l.entries[:n-1]
	}
}

// put enters a period that is over.
func (l *level) put(e entry) {
	l.cut(e.from)
	l.entries = append(l.entries, e)
}

// merge enters a sample or a shorter period into the one that is under way, which began at a time.
func (l *level) merge(from int64, p *piece) {
	if l.open == nil {
		l.open = &piece{from: from, state: p.state, matrix: p.matrix, load: slices.Clone(p.load)}
		return
	}
	o, alarms := l.open, max(l.open.state.Alarms, p.state.Alarms)
	was, is := Rank(o.state.Verdict), Rank(p.state.Verdict)
	if is >= was {
		o.state = p.state
	}
	if is > was || is == was && p.matrix != nil {
		o.matrix = p.matrix
	}
	o.state.Alarms = alarms
	if more := len(p.load) - len(o.load); more > 0 {
		o.load = append(o.load, make([]byte, more)...)
	}
	for i, step := range p.load {
		o.load[i] = max(o.load[i], step)
	}
}

// Rank orders verdicts: a higher one is worse.
func Rank(verdict string) (v isolation.Verdict) {
	_ = v.UnmarshalText([]byte(verdict)) // of none it is 0
	return v
}
