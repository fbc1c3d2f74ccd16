package past

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/test/need"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func cableOf(n int) views.Cable {
	return views.Cable{A: observed.Place{Node: ib.NodeGUID(n), Port: 1}, B: observed.Place{Node: ib.NodeGUID(n + 1<<20), Port: 2}}
}

func sample(at time.Duration, verdict string, percents ...int) Sample {
	s := Sample{At: start.Add(at), State: views.PastState{Verdict: verdict, Alarms: len(percents)}}
	for i, p := range percents {
		s.Cables = append(s.Cables, views.CableShare{Cable: cableOf(i), Percent: p})
	}
	return s
}

func opened(t *testing.T, dir string) *Keeper {
	t.Helper()
	k, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *Keeper) add(t *testing.T, s Sample) {
	t.Helper()
	if err := k.Add(s); err != nil {
		t.Fatal(err)
	}
}

// says is what is kept of a time, in one line.
func (k *Keeper) says(t *testing.T, at time.Duration) string {
	t.Helper()
	r, err := k.At(start.Add(at))
	if errors.Is(err, views.ErrOlder) {
		return "nothing"
	}
	if err != nil {
		t.Fatal(err)
	}
	matrix := "no matrix"
	if r.Matrix != nil {
		matrix = r.Matrix.Parties[0].Name
	}
	out := fmt.Sprintf("%v+%v %s %d alarms %s:", r.From.Sub(start), r.Until.Sub(r.From), r.State.Verdict, r.State.Alarms, matrix)
	for _, c := range r.Cables {
		out += fmt.Sprintf(" %d=%d", c.Cable.A.Node, c.Percent)
	}
	return out
}

func (k *Keeper) want(t *testing.T, at time.Duration, want string) {
	t.Helper()
	if got := k.says(t, at); got != want {
		t.Errorf("of %v is kept %q, want %q", at, got, want)
	}
}

func bytesIn(t *testing.T, dir string) (n int64) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list {
		if info, err := x.Info(); err == nil {
			n += info.Size()
		}
	}
	return n
}

// A load is kept as the next step, of a period the highest of each cable and the worst verdict with its matrix; what
// is long ago in longer periods.
func TestMerged(t *testing.T) {
	k := opened(t, t.TempDir())
	with := func(s Sample, name string) Sample {
		s.Matrix = &views.Matrix{Parties: []views.MatrixParty{{Name: name}}}
		return s
	}
	k.want(t, 0, "nothing")
	k.add(t, with(sample(0, "isolated", 0, 1, 20, 21), "a"))
	k.want(t, 5*time.Second, "0s+10s isolated 4 alarms a: 0=0 1=10 2=20 3=40")
	k.want(t, -time.Second, "nothing")
	k.add(t, with(sample(10*time.Second, "violated", 100), "b"))
	k.add(t, with(sample(20*time.Second, "isolated", 0, 0, 0, 0, 0, 0), "c"))
	k.want(t, 25*time.Second, "20s+10s isolated 6 alarms c: 0=0 1=0 2=0 3=0 4=0 5=0")
	for at := time.Minute; at <= time.Hour; at += time.Minute {
		k.add(t, with(sample(at, "isolated", 30), "a"))
	}
	k.want(t, 25*time.Second, "0s+1m0s violated 6 alarms b: 0=100 1=10 2=20 3=40 4=0 5=0")
	k.want(t, 90*time.Second, "1m0s+1m0s isolated 1 alarms a: 0=40")
	for at := time.Hour; at <= 25*time.Hour; at += 15 * time.Minute {
		k.add(t, with(sample(at, "isolated-unguarded"), "a"))
	}
	k.want(t, 10*time.Minute, "0s+15m0s violated 6 alarms b: 0=100 1=10 2=20 3=40 4=0 5=0")
	// Between is nothing: the last before it is told, with when it was.
	k.add(t, sample(26*time.Hour, "unknown"))
	k.want(t, 25*time.Hour+30*time.Minute, "25h0m0s+1m0s isolated-unguarded 0 alarms a:")
	m := k.Moments()
	if first := m[0]; !first.From.Equal(start) || first.Verdict != "violated" || first.Until.Sub(first.From) != 15*time.Minute {
		t.Errorf("the first moment is %+v", first)
	}
	if last := m[len(m)-1]; !last.From.Equal(start.Add(26*time.Hour)) || last.Verdict != "unknown" {
		t.Errorf("the last moment is %+v", last)
	}
	if !slices.IsSortedFunc(m, func(a, b views.PastPeriod) int { return a.From.Compare(b.From) }) {
		t.Error("moments are not in order")
	}
}

// What is kept is there after a restart, also the quarter of an hour that was under way; the load of a cable
// with a new number too.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	k := opened(t, dir)
	for at := time.Duration(0); at < 40*time.Minute; at += Every {
		s := sample(at, "isolated", int(at/time.Minute)%2*100)
		s.Matrix = &views.Matrix{Parties: []views.MatrixParty{{Name: fmt.Sprint("m", int(at/(20*time.Minute)))}}}
		k.add(t, s)
	}
	k = opened(t, dir)
	k.want(t, 5*time.Minute+time.Second, "5m0s+1m0s isolated 1 alarms m0: 0=100")
	k.want(t, 38*time.Minute, "38m0s+1m0s isolated 1 alarms m1: 0=0")
	s := sample(50*time.Minute, "isolated", 0, 60)
	s.Cables[0], s.Cables[1] = s.Cables[1], s.Cables[0]
	k.add(t, s)
	k.want(t, 50*time.Minute, "50m0s+10s isolated 2 alarms no matrix: 0=0 1=60")
	for at := time.Hour; at < 26*time.Hour; at += 5 * time.Minute {
		k.add(t, sample(at, "isolated"))
	}
	k = opened(t, dir)
	k.want(t, 20*time.Minute, "15m0s+15m0s isolated 1 alarms m1: 0=100")
	k.want(t, 40*time.Minute, "30m0s+15m0s isolated 1 alarms m1: 0=100")
}

// Of a file that is torn or damaged what was before is kept, and what comes after goes to another.
func TestTorn(t *testing.T) {
	for name, tear := range map[string]func([]byte) []byte{
		"the end is missing":  func(b []byte) []byte { return b[:len(b)-5] },
		"the head is missing": func(b []byte) []byte { return append(b, 0, 0, 0) },
		"a byte is another":   func(b []byte) []byte { b[len(b)-20] ^= 1; return b },
		"a length is another": func(b []byte) []byte { return append(b, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) },
	} {
		dir := t.TempDir()
		k := opened(t, dir)
		for at := time.Duration(0); at <= 3*time.Minute; at += time.Minute {
			k.add(t, sample(at, "isolated", 100))
		}
		list, _ := filepath.Glob(filepath.Join(dir, "*.minute"))
		data, err := os.ReadFile(list[0])
		if err == nil {
			err = os.WriteFile(list[0], tear(data), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		k = opened(t, dir)
		k.want(t, time.Minute, "1m0s+1m0s isolated 1 alarms no matrix: 0=100")
		k.add(t, sample(10*time.Minute, "violated", 20))
		k.add(t, sample(11*time.Minute, "isolated"))
		k = opened(t, dir)
		k.want(t, time.Minute, "1m0s+1m0s isolated 1 alarms no matrix: 0=100")
		k.want(t, 10*time.Minute, "10m0s+1m0s violated 1 alarms no matrix: 0=20")
		if t.Failed() {
			t.Fatal(name)
		}
	}
}

// Without the list of cables pieces say nothing: it begins again, and says so.
func TestCablesDamaged(t *testing.T) {
	dir := t.TempDir()
	k := opened(t, dir)
	for at := time.Duration(0); at <= 3*time.Minute; at += time.Minute {
		k.add(t, sample(at, "isolated", 100))
	}
	path := filepath.Join(dir, "cables")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[3] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	k, err = Open(dir)
	if err == nil || !strings.Contains(err.Error(), path+" is damaged: what cables carried in the past is lost") {
		t.Error(err)
	}
	k.want(t, time.Minute, "nothing")
	k.add(t, sample(4*time.Minute, "isolated", 60))
	k.want(t, 4*time.Minute, "4m0s+10s isolated 1 alarms no matrix: 0=60")
}

// The place of a cable that nothing is kept of any more is that of the next, and no other's.
func TestPlaceOfCable(t *testing.T) {
	var c cables
	one := func(n int) []views.CableShare { return []views.CableShare{{Cable: cableOf(n), Percent: 10}} }
	c.enter(one(1), start)
	c.enter(one(2), start.Add(Age))
	if load, fresh := c.enter(one(3), start.Add(Age+2*day)); len(load) != 3 || !fresh {
		t.Errorf("%v: a place was taken that something is kept of", load)
	}
	if load, fresh := c.enter(one(4), start.Add(Age+3*day)); !slices.Equal(load, []byte{2, 0, 0}) || !fresh || len(c.place) != 3 || c.list[0] != cableOf(4) {
		t.Errorf("%v: the place of the first was not taken: %v", load, c.list)
	}
	if _, fresh := c.enter(one(4), start.Add(Age+3*day)); fresh {
		t.Error("nothing is new")
	}
}

// A clock that was wrong does not end it.
func TestClockGoesBack(t *testing.T) {
	dir := t.TempDir()
	k := opened(t, dir)
	for _, at := range []time.Duration{0, time.Minute, 2 * time.Hour, 3 * time.Hour, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute} {
		k.add(t, sample(at, "isolated"))
	}
	k.want(t, 3*time.Hour, "4m0s+10s isolated 0 alarms no matrix:")
	k = opened(t, dir)
	k.add(t, sample(5*time.Minute, "violated"))
	k.want(t, 3*time.Hour, "5m0s+10s violated 0 alarms no matrix:")
	k.want(t, 4*time.Minute, "3m0s+1m0s isolated 0 alarms no matrix:")
}

// cablesOf11664 is how many cables 11,664 hosts and three levels of switches with 36 ports have.
const cablesOf11664 = 3 * 11664

// A piece of 11,664 hosts, of which every cable carries something else, is so small that BytesMax has room for all.
func TestBytesOfPiece(t *testing.T) {
	p := &piece{state: views.PastState{Verdict: "isolated-by-end-ports"}, load: make([]byte, cablesOf11664)}
	for i, r := 0, rand.New(rand.NewPCG(1, 2)); i < len(p.load); i++ {
		p.load[i] = byte(1 + r.IntN(len(steps)))
	}
	n, pieces := len(p.encode(true)), int(minuteAge/time.Minute)+minutesInFile+int(Age/(15*time.Minute))+quartersInFile
	t.Logf("%d bytes, %d pieces", n, pieces)
	if all := n*pieces + cablesOf11664*cableSize; all > BytesMax {
		t.Errorf("%d bytes, want at most %d", all, BytesMax)
	}
}

// TestBytesOf30Days: 30 days of 11,664 hosts, of which every cable carries something else each time, take less than
// BytesMax, and none of that is lost for want of room; in memory is what finds it.
func TestBytesOf30Days(t *testing.T) {
	if !need.Soak() {
		t.Skip("IBWARDEN_SOAK is not set")
	}
	dir := t.TempDir()
	k := opened(t, dir)
	r := rand.New(rand.NewPCG(1, 2))
	s := sample(0, "isolated", make([]int, cablesOf11664)...)
	s.Matrix = &views.Matrix{Sparse: true}
	for i := range 100 {
		s.Matrix.Parties = append(s.Matrix.Parties, views.MatrixParty{Name: fmt.Sprint("tenant-", i), Kind: "tenant"})
		s.Matrix.Cells = append(s.Matrix.Cells, views.MatrixCell{A: i, B: i, Talk: "all"})
	}
	// Quarters of an hour, and of the last day minutes: nothing more is kept in the end.
	for at := time.Duration(0); at < Age+day; {
		for i := range s.Cables {
			s.Cables[i].Percent = steps[r.IntN(len(steps))]
		}
		s.At, s.State.Revision = start.Add(at), uint64(at/time.Hour)
		s.Matrix.Cells[0].Talking = int(at / time.Hour) // another every hour
		k.add(t, s)
		if at += 15 * time.Minute; at > Age {
			at -= 14 * time.Minute
		}
	}
	n := bytesIn(t, dir)
	t.Logf("%.1f MiB in %d periods", float64(n)/(1<<20), len(k.Moments()))
	if n > BytesMax {
		t.Errorf("%d bytes, want at most %d", n, BytesMax)
	}
	if first := k.Moments()[0].From; first.After(start.Add(day + 15*time.Minute)) {
		t.Errorf("the first period is of %v: some had no room", first.Sub(start))
	}
	entries := 0
	for _, l := range k.levels {
		entries += len(l.entries)
	}
	if most := 60 + 24*60 + 30*96 + 3*2; entries > most {
		t.Errorf("%d periods, want at most %d", entries, most)
	}
	began := time.Now()
	k = opened(t, dir)
	t.Logf("opened in %v", time.Since(began).Round(time.Millisecond))
	if got := len(k.levels[2].entries); got < 30*96-1 {
		t.Errorf("%d quarters after a restart", got)
	}
}

// Where there is no room for all, the oldest go first.
func TestRoom(t *testing.T) {
	k := opened(t, t.TempDir())
	for at := time.Duration(0); at < 5*time.Hour; at += time.Minute {
		k.add(t, sample(at, "isolated", 100))
	}
	files := len(k.files)
	k.bytes = BytesMax - 10 // as if pieces were larger
	before := k.bytes
	k.add(t, sample(5*time.Hour, "isolated"))
	if len(k.files) >= files || k.bytes >= before {
		t.Errorf("%d files of %d, %d bytes of %d", len(k.files), files, k.bytes, before)
	}
	k.want(t, 5*time.Hour, "5h0m0s+10s isolated 0 alarms no matrix:")
	k.want(t, 4*time.Hour+10*time.Minute, "4h10m0s+1m0s isolated 1 alarms no matrix: 0=100")
}

func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "past")
	k := opened(t, dir)
	k.add(t, sample(0, "isolated", 100))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := k.Add(sample(time.Minute, "violated", 20)); err == nil {
		t.Error("nothing was said of what could not be written")
	}
	k.want(t, time.Minute, "1m0s+10s violated 1 alarms no matrix: 0=20")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	k.add(t, sample(2*time.Minute, "isolated"))
	k.Close()
	k.add(t, sample(3*time.Minute, "isolated")) // to another file
	k = opened(t, dir)
	k.want(t, 3*time.Minute, "2m0s+1m0s isolated 0 alarms no matrix:")
	k.want(t, 119*time.Second, "1m0s+1m0s violated 1 alarms no matrix:")
}
