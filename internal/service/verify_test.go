package service_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
	"github.com/ibwarden/ibwarden/internal/store/bolt"
)

// verified looks that a store is as its service wrote it.
func verified(t testing.TB, db store.Store) {
	t.Helper()
	v, err := service.Verify(t.Context(), db, nil)
	if err != nil || v.Broken != nil || v.Differ > 0 {
		t.Errorf("a store that nobody changed: %+v: %v", v, err)
	}
}

// past is a store with a random history, and what its test knows of that.
type past struct {
	*rig
	random *rand.Rand
	file   string
	wrote  map[string]uint64 // by key of an object, the revision that wrote it last
	gone   map[string]uint64 // of one that was deleted, the revision that did it
	values map[string][]byte // each object as it was stored first
	apart  int
	// ofRevision has the entry that committed each revision.
	ofRevision map[uint64]uint64
	entries    uint64
}

// newPast makes so many random changes, some refused, and some with an idempotency key.
func newPast(t *testing.T, seed uint64, changes int) *past {
	t.Helper()
	p := &past{
		rig: open(t, filepath.Join(t.TempDir(), "store"), false), random: rand.New(rand.NewPCG(seed, 2)),
		wrote: map[string]uint64{}, gone: map[string]uint64{}, values: map[string][]byte{}, ofRevision: map[uint64]uint64{},
	}
	p.file = filepath.Join(p.dir, bolt.FileName)
	p.twoTenants()
	for n := range changes {
		p.change(n)
	}
	_ = p.Keep(t.Context(), p.Epoch(), []store.Object{{Key: service.ManagerPrefix + "lids", Value: []byte("x")}})
	p.note()
	return p
}

// rest ends the service, which writes by then what it has counted of refusals, and notes what
// the store has in the end.
func (p *past) rest() {
	p.Helper()
	p.Service.Close()
	p.note()
}

func (p *past) closeStore() {
	p.Helper()
	if err := p.store.Close(); err != nil {
		p.Error(err)
	}
}

func (p *past) change(n int) {
	k := ib.PKeyBase(0x100 + p.random.IntN(5))
	name := fmt.Sprintf("t%d", p.random.IntN(4))
	var c resource.Change
	switch p.random.IntN(7) {
	case 0:
		c = resource.DeletePartition{PKey: k}
	case 1:
		c = resource.PutTenant{Tenant: resource.Tenant{Name: name, KnownPortsOnly: n%2 == 0}}
	case 2:
		c = resource.DeleteTenant{Name: name}
	case 3, 4:
		c = resource.SetMembers{PKey: k, Members: []resource.Member{{Port: ib.PortGUID(10 + p.random.IntN(3)), Membership: policy.Full}}}
	case 5:
		c = resource.RemoveMembers{PKey: k, Ports: []ib.PortGUID{ib.PortGUID(10 + p.random.IntN(3))}}
	default:
		c = resource.PutPartition{Partition: resource.Partition{PKey: k, Name: fmt.Sprintf("<n&%d>", n), Owner: "red"}}
	}
	r := service.Request{Change: c, By: provider, Seen: resource.Unseen}
	if n%5 == 0 {
		r.Repeat = fmt.Sprint("once-", n)
	}
	_, _ = p.Do(p.Context(), r) // what is refused is in the log too
	p.pass(20 * time.Second)
	if n%4 == 0 {
		p.note()
	}
}

// note notes the objects as they were stored, and what became of those that were there.
func (p *past) note() {
	p.Helper()
	contents, err := p.store.Load(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	there := map[string]bool{}
	p.apart = 0
	for _, o := range contents.Objects {
		if slices.ContainsFunc([]string{"manager/", "numbers/", "repeated/"}, func(s string) bool { return strings.HasPrefix(o.Key, s) }) {
			p.apart++
			continue
		}
		there[o.Key] = true
		var x struct{ Revision uint64 }
		if err := json.Unmarshal(o.Value, &x); err != nil {
			p.Fatal(err)
		}
		if p.values[o.Key] == nil {
			p.values[o.Key] = o.Value
		}
		p.wrote[o.Key] = x.Revision
		delete(p.gone, o.Key)
	}
	for rev, err := range p.store.Revisions(p.Context(), store.Range{}) {
		var r service.Record
		if err = errors.Join(err, json.Unmarshal(rev.Data, &r)); err != nil {
			p.Fatal(err)
		}
		for _, e := range r.Edits {
			if len(e.After) == 0 && !there[e.Key] {
				p.gone[e.Key] = rev.Number
				delete(p.wrote, e.Key)
			}
		}
	}
	for e, err := range p.store.Audit(p.Context(), store.Range{}) {
		if err != nil {
			p.Fatal(err)
		}
		if p.entries = e.Sequence; e.Revision > 0 {
			p.ofRevision[e.Revision] = e.Sequence
		}
	}
}

// tampered is what Verify finds in a copy of the store of which a bucket was changed; the error
// is also of one that cannot be opened.
func (p *past) tampered(bucket string, f func(*bbolt.Bucket, *bbolt.Tx) error) (service.Verification, error) {
	p.Helper()
	dir := filepath.Join(p.TempDir(), "copy")
	data, err := os.ReadFile(p.file)
	if err = errors.Join(err, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, bolt.FileName), data, 0o600)); err != nil {
		p.Fatal(err)
	}
	raw, err := bbolt.Open(filepath.Join(dir, bolt.FileName), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		p.Fatal(err)
	}
	err = raw.Update(func(tx *bbolt.Tx) error { return f(tx.Bucket([]byte(bucket)), tx) })
	if err = errors.Join(err, raw.Close()); err != nil {
		p.Fatal(err)
	}
	db, err := bolt.Open(dir)
	if err != nil {
		return service.Verification{}, err
	}
	defer db.Close()
	return service.Verify(p.Context(), db, nil)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func sealed(bucket string, n uint64, data []byte) []byte {
	return store.SealFrame(fmt.Sprintf("%s %d", bucket, n), data)
}

// object changes one object at random, and says what is to be found.
func (p *past) object() (what string, want service.Difference, f func(*bbolt.Bucket, *bbolt.Tx) error) {
	there, gone := slices.Sorted(maps.Keys(p.wrote)), slices.Sorted(maps.Keys(p.gone))
	key := there[p.random.IntN(len(there))]
	last := p.wrote[key]
	put := func(value func(was []byte) []byte) func(*bbolt.Bucket, *bbolt.Tx) error {
		return func(b *bbolt.Bucket, _ *bbolt.Tx) error {
			was, err := store.OpenFrame("object "+key, b.Get([]byte(key)))
			if err != nil {
				was = nil
			}
			return b.Put([]byte(key), store.SealFrame("object "+key, value(bytes.Clone(was))))
		}
	}
	switch p.random.IntN(5) {
	case 0:
		return "delete", service.Difference{Key: key, Problem: service.Deleted, Revision: last}, func(b *bbolt.Bucket, _ *bbolt.Tx) error { return b.Delete([]byte(key)) }
	case 1: // also one revision more or less, which decides about If-Match
		return "change a byte", service.Difference{Key: key, Problem: service.Changed, Revision: last}, put(func(was []byte) []byte {
			was[p.random.IntN(len(was))] ^= 1
			return was
		})
	case 2:
		key = "tenant/new"
		return "add", service.Difference{Key: key, Problem: service.Added}, put(func([]byte) []byte {
			return fmt.Appendf(nil, `{"revision":%d,"object":{"name":"new"}}`, p.random.IntN(9))
		})
	case 3:
		key = gone[p.random.IntN(len(gone))]
		return "bring back", service.Difference{Key: key, Problem: service.Added, Revision: p.gone[key]}, put(func([]byte) []byte { return p.values[key] })
	}
	there = slices.DeleteFunc(there, func(key string) bool { // it was written once
		return bytes.HasPrefix(p.values[key], fmt.Appendf(nil, `{"revision":%d,`, p.wrote[key]))
	})
	if len(there) == 0 {
		p.Fatal("no object was written twice: too few changes to test with")
	}
	key = there[p.random.IntN(len(there))]
	return "an older value", service.Difference{Key: key, Problem: service.Changed, Revision: p.wrote[key]}, put(func([]byte) []byte { return p.values[key] })
}

// TestVerifyFindsObjects: an untouched store with a random history passes; with one object changed,
// deleted or added behind the service's back exactly that is found, with the revision that wrote it.
func TestVerifyFindsObjects(t *testing.T) {
	for seed := range uint64(3) {
		t.Logf("seed %d", seed)
		p := newPast(t, seed, 80)
		p.rest()
		v, err := service.Verify(t.Context(), p.store, nil)
		if err != nil || v.Broken != nil || v.Differ != 0 || v.Objects != len(p.wrote) || v.Apart != p.apart || v.Older != 0 || v.Entries != p.entries || v.Head.Sequence != p.entries {
			t.Fatalf("untouched: %+v: %v; want %d objects, %d apart, %d entries", v, err, len(p.wrote), p.apart, p.entries)
		}
		if p.apart < 5 || len(p.gone) < 3 || p.entries <= p.last() {
			t.Fatalf("%d apart, %d deleted, %d entries, %d revisions: too few to test with", p.apart, len(p.gone), p.entries, p.last())
		}
		p.closeStore()
		for range 40 {
			what, want, f := p.object()
			v, err := p.tampered("object", f)
			if err != nil || v.Broken != nil || v.Differ != 1 || !slices.Equal(v.Differences, []service.Difference{want}) {
				t.Errorf("%s: %+v: %v; want %+v", what, v, err, want)
			}
		}
		// One without its checksum is named too.
		v, err = p.tampered("object", func(b *bbolt.Bucket, _ *bbolt.Tx) error { return b.Put([]byte("tenant/red"), []byte("garbage")) })
		if err != nil || v.Broken == nil || !strings.Contains(v.Broken.Error(), "tenant/red") || v.Head != (store.Head{}) {
			t.Errorf("garbage: %+v: %v", v, err)
		}
	}
}

// forged is the log of a bucket without the entry of a sequence, with all that follow numbered and
// chained again, and with a state that has its head: what who can write the file could do.
func forged(b *bbolt.Bucket, tx *bbolt.Tx, without uint64) error {
	var list []store.Entry
	err := b.ForEach(func(k, v []byte) error {
		n := binary.BigEndian.Uint64(k)
		line, err := store.OpenFrame(fmt.Sprintf("audit %d", n), v)
		if err != nil || n == without {
			return err
		}
		e, err := store.ParseEntry(line)
		list = append(list, e)
		return err
	})
	if err != nil {
		return err
	}
	var head store.Head
	for i, e := range list {
		e.Sequence, e.Previous = uint64(i+1), head.Hash
		content, _, _ := bytes.Cut(e.Line(), []byte(`,"hash":"`))
		e.Hash = store.Sum(content)
		head = store.Head{Sequence: e.Sequence, Hash: e.Hash}
		if err := b.Put(number(e.Sequence), sealed("audit", e.Sequence, e.Line())); err != nil {
			return err
		}
	}
	if err := b.Delete(number(uint64(len(list) + 1))); err != nil {
		return err
	}
	meta := tx.Bucket([]byte("meta"))
	data, err := store.OpenFrame("state", meta.Get([]byte("state")))
	var state store.State
	if err = errors.Join(err, json.Unmarshal(data, &state)); err != nil {
		return err
	}
	state.Audit = head
	data, _ = json.Marshal(state)
	return meta.Put([]byte("state"), store.SealFrame("state", data))
}

// TestVerifyNamesEntriesAndRevisions: an entry or a revision that is missing or changed is named by
// its number; so is the revision whose entry was taken out of a log that was chained again.
func TestVerifyNamesEntriesAndRevisions(t *testing.T) {
	const seed = 27
	t.Logf("seed %d", seed)
	p := newPast(t, seed, 60)
	p.rest()
	last := p.last()
	p.closeStore()
	names := func(what, text string, v service.Verification, err error) {
		t.Helper()
		said := fmt.Sprint(err)
		if err == nil {
			said = fmt.Sprint(v.Broken)
		}
		if v.Broken == nil && !errors.Is(err, store.ErrCorrupt) || !strings.Contains(said, text) || v.Objects+v.Differ > 0 {
			t.Errorf("%s: %s: %+v; want %q", what, said, v, text)
		}
	}
	for i := range 40 {
		n, rev := 1+p.random.Uint64N(p.entries), 1+p.random.Uint64N(last)
		if i < 4 { // the ends
			n, rev = []uint64{1, p.entries}[i%2], []uint64{1, last}[i%2]
		}
		v, err := p.tampered("audit", func(b *bbolt.Bucket, _ *bbolt.Tx) error { return b.Delete(number(n)) })
		names("an entry is missing", map[bool]string{false: fmt.Sprint("entry ", n), true: ""}[n == p.entries], v, err)
		if v.Broken != nil && !strings.Contains(v.Broken.Error(), "missing") {
			t.Errorf("entry %d is missing: %v", n, v.Broken)
		}
		v, err = p.tampered("audit", func(b *bbolt.Bucket, _ *bbolt.Tx) error {
			line, err := store.OpenFrame(fmt.Sprintf("audit %d", n), b.Get(number(n)))
			if err != nil {
				return err
			}
			e, err := store.ParseEntry(line)
			e.Caller += "x"
			return errors.Join(err, b.Put(number(n), sealed("audit", n, e.Line())))
		})
		names("an entry is changed", fmt.Sprint("entry ", n, ": its hash"), v, err)
		v, err = p.tampered("revision", func(b *bbolt.Bucket, _ *bbolt.Tx) error { return b.Delete(number(rev)) })
		names("a revision is missing", map[bool]string{false: fmt.Sprint("revision ", rev), true: ""}[rev == last], v, err)
		if v.Broken != nil && !strings.Contains(v.Broken.Error(), "missing") {
			t.Errorf("revision %d is missing: %v", rev, v.Broken)
		}
		v, err = p.tampered("revision", func(b *bbolt.Bucket, _ *bbolt.Tx) error {
			data, err := store.OpenFrame(fmt.Sprint("revision ", rev), b.Get(number(rev)))
			data = bytes.Replace(bytes.Clone(data), []byte(`"by":"`), []byte(`"by":"x`), 1)
			return errors.Join(err, b.Put(number(rev), sealed("revision", rev, data)))
		})
		names("a revision is changed", fmt.Sprintf("revision %d is not what was committed", rev), v, err)
		v, err = p.tampered("audit", func(b *bbolt.Bucket, tx *bbolt.Tx) error { return forged(b, tx, p.ofRevision[rev]) })
		names("the log is forged", fmt.Sprintf("no entry commits revision %d", rev), v, err)
	}
}

// TestVerifyOfATrimmedHistory: objects that were written before the history begins are counted as not
// compared; one that was written later is compared still.
func TestVerifyOfATrimmedHistory(t *testing.T) {
	p := newPast(t, 5, 40)
	p.pass(2 * store.KeepAudit)
	cut := p.now().Add(-store.KeepAudit)
	newer := map[string]uint64{"partition/0x0104": p.must(resource.PutPartition{Partition: resource.Partition{PKey: 0x104, Name: "late", Owner: "red"}}).Revision}
	old := p.values["partition/0x0201"]
	gone := p.must(resource.DeletePartition{PKey: 0x201}).Revision
	var contents *store.Contents
	trim := func() error {
		p.note()
		var err error
		if contents, err = p.store.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		audit := store.Entry{Time: p.now(), Caller: "test", Action: "trim", Decision: store.Accepted}
		_, err = p.store.Trim(t.Context(), store.Trim{Epoch: contents.Epoch, Before: cut, Audit: audit})
		return err
	}
	err := trim()
	if errors.Is(err, store.ErrRetention) { // the last entry has counted refusals and the time before the leap
		p.must(resource.PutTenant{Tenant: resource.Tenant{Name: "after"}})
		err = trim()
	}
	if err != nil {
		t.Fatal(err)
	}
	v, err := service.Verify(t.Context(), p.store, nil)
	if err != nil || v.Broken != nil || v.Differ != 0 || v.Oldest != gone-1 || v.Objects < 1 || v.Older < 5 || v.Objects+v.Older != len(p.wrote) || v.Apart != p.apart {
		t.Fatalf("%+v: %v; want %d objects, %d apart, from revision %d on", v, err, len(p.wrote), p.apart, gone-1)
	}
	p.end()
	key := "partition/0x0104"
	for what, f := range map[service.Problem]func(*bbolt.Bucket, *bbolt.Tx) error{
		service.Deleted: func(b *bbolt.Bucket, _ *bbolt.Tx) error { return b.Delete([]byte(key)) },
		service.Changed: func(b *bbolt.Bucket, _ *bbolt.Tx) error { // as if it were older
			return b.Put([]byte(key), store.SealFrame("object "+key, []byte(`{"revision":1,"object":{}}`)))
		},
	} {
		v, err := p.tampered("object", f)
		if want := []service.Difference{{Key: key, Problem: what, Revision: newer[key]}}; err != nil || !reflect.DeepEqual(v.Differences, want) {
			t.Errorf("%s: %+v: %v", what, v, err)
		}
	}
	v, err = p.tampered("object", func(b *bbolt.Bucket, _ *bbolt.Tx) error { // with the value that it had before the history begins
		return b.Put([]byte("partition/0x0201"), store.SealFrame("object partition/0x0201", old))
	})
	if want := []service.Difference{{Key: "partition/0x0201", Problem: service.Added, Revision: gone}}; err != nil || old == nil || !reflect.DeepEqual(v.Differences, want) {
		t.Errorf("brought back: %+v: %v", v, err)
	}
	// One that says it is of a revision that is kept, or of none, and that no revision wrote.
	for _, revision := range []uint64{0, contents.Revision} {
		v, err := p.tampered("object", func(b *bbolt.Bucket, _ *bbolt.Tx) error {
			return b.Put([]byte("tenant/new"), store.SealFrame("object tenant/new", fmt.Appendf(nil, `{"revision":%d,"object":{"name":"new"}}`, revision)))
		})
		if want := []service.Difference{{Key: "tenant/new", Problem: service.Added}}; err != nil || !reflect.DeepEqual(v.Differences, want) {
			t.Errorf("of revision %d: %+v: %v", revision, v, err)
		}
	}
}
