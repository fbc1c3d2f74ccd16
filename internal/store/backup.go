package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"iter"
	"strconv"
	"strings"
)

// BackupFormat is the version of the format of backups that this program writes.
//
// A backup begins with a line, `ibwarden-backup 1`, where 1 is the version. Records
// follow, each with its length in 4 bytes (most significant first) and as many bytes:
// a checksum (CRC-32C) in 4, the kind in 1, number and epoch in 8 each, the length of the
// key in 2, the key, and the data. The last record has the kind 255, and the SHA-256 of
// all bytes before it as its data.
const BackupFormat = 1

const backupMagic = "ibwarden-backup "

// recordEnd is the kind of the last record of a backup.
const recordEnd RecordKind = 255

const (
	recordHeader = 1 + 8 + 8 + 2                                       // bytes of kind, number, epoch and length of the key
	maxRecord    = FrameOverhead + recordHeader + MaxKey + MaxRevision // bytes of a record
	maxFirstLine = 64                                                  // bytes of the first line
)

// Backup writes a store, as it is at one moment, and returns its state then. Outcomes may
// be newer. Commits go on meanwhile. What is written has the secrets of the store: a file
// of it belongs to nobody else (mode 0600).
func Backup(ctx context.Context, s Store, w io.Writer) (*State, error) {
	now, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	state := &State{Epoch: now.Epoch, Owner: now.Owner, Revision: now.Revision, Oldest: now.Oldest, Audit: now.Audit, Checkpoint: now.Checkpoint}
	sum := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	if _, err := fmt.Fprintf(out, "%s%d\n", backupMagic, BackupFormat); err != nil {
		return nil, err
	}
	for r, err := range records(ctx, s, now, state) {
		if err != nil {
			return nil, err
		}
		if _, err := out.Write(r.encode()); err != nil {
			return nil, err
		}
	}
	if err := out.Flush(); err != nil {
		return nil, err
	}
	end := Record{Kind: recordEnd, Data: sum.Sum(nil)}
	_, err = w.Write(end.encode())
	return state, err
}

// records yields what a store held when it was loaded.
func records(ctx context.Context, s Store, now *Contents, state *State) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		data, err := json.Marshal(state)
		if !yield(Record{Kind: RecordState, Data: data}, err) || err != nil {
			return
		}
		for _, o := range now.Objects {
			if !yield(Record{Kind: RecordObject, Key: o.Key, Data: o.Value}, nil) {
				return
			}
		}
		if now.Revision > 0 {
			for r, err := range s.Revisions(ctx, Range{From: now.Oldest}) {
				if err == nil && r.Number > now.Revision {
					break
				}
				if !yield(Record{Kind: RecordRevision, Number: r.Number, Epoch: r.Epoch, Data: r.Data}, err) || err != nil {
					return
				}
				if r.Outcome != nil && !yield(Record{Kind: RecordOutcome, Number: r.Number, Data: r.Outcome}, nil) {
					return
				}
			}
		}
		for e, err := range upTo(s.Audit(ctx, Range{From: now.Checkpoint.Sequence + 1}), now.Audit.Sequence) {
			var r Record
			if err == nil {
				r = Record{Kind: RecordEntry, Number: e.Sequence, Data: e.Line()}
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// Restore reads a backup into an empty store, and returns the state that the store has
// then. If it fails, the store is empty, or refuses everything but another restore. What
// names the backup in errors, which are a NewerError for a backup of a newer format, and ErrCorrupt
// for one that is damaged or not whole.
func Restore(ctx context.Context, s Store, r io.Reader, what string) (*State, error) {
	in := &backupReader{what: what, sum: sha256.New(), in: bufio.NewReaderSize(r, 1<<16)}
	if err := in.first(); err != nil {
		return nil, err
	}
	if err := s.Fill(ctx, in.records); err != nil {
		return nil, err
	}
	return in.state, nil
}

type backupReader struct {
	what  string
	in    *bufio.Reader
	sum   hash.Hash
	state *State

	kind     RecordKind // of the record before
	key      string     // of the object before
	revision uint64     // the last
	entry    Head       // the last
}

func (b *backupReader) corrupt(part string, err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &CorruptError{What: b.what, Part: part, Err: err}
}

// first reads the first line.
func (b *backupReader) first() error {
	line, err := b.in.ReadSlice('\n')
	if err != nil || len(line) > maxFirstLine || !bytes.HasPrefix(line, []byte(backupMagic)) {
		return b.corrupt("its first line", errors.New("it is no backup of ibwarden"))
	}
	b.sum.Write(line)
	text := strings.TrimSuffix(strings.TrimPrefix(string(line), backupMagic), "\n")
	has, err := strconv.Atoi(text)
	if err != nil || has < 1 {
		return b.corrupt("its first line", fmt.Errorf("format %q, want a number", text))
	}
	if has > BackupFormat {
		return &NewerError{What: b.what, Has: has, Knows: BackupFormat}
	}
	return nil
}

// records yields the records up to the last, which it checks.
func (b *backupReader) records(yield func(Record, error) bool) {
	for count := 1; ; count++ {
		part := fmt.Sprintf("record %d", count)
		sum := b.sum.Sum(nil)
		r, err := b.record()
		if err != nil {
			yield(Record{}, b.corrupt(part, err))
			return
		}
		if r.Kind == recordEnd {
			if err := b.end(r, sum); err != nil {
				yield(Record{}, b.corrupt(part, err))
			}
			return
		}
		if err := b.follows(r); err != nil {
			yield(Record{}, b.corrupt(part, err))
			return
		}
		if !yield(*r, nil) {
			return
		}
	}
}

func (b *backupReader) record() (*Record, error) {
	var length [4]byte
	if _, err := io.ReadFull(b.in, length[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(length[:])
	if n > maxRecord {
		return nil, fmt.Errorf("%d bytes, at most %d", n, maxRecord)
	}
	// Bytes are taken as they come, so that a length alone takes no memory.
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, b.in, int64(n)); err != nil {
		return nil, err
	}
	b.sum.Write(length[:])
	b.sum.Write(buf.Bytes())
	return decodeRecord(buf.Bytes())
}

func (r *Record) encode() []byte {
	body := make([]byte, 0, recordHeader+len(r.Key)+len(r.Data))
	body = append(body, byte(r.Kind))
	body = binary.BigEndian.AppendUint64(body, r.Number)
	body = binary.BigEndian.AppendUint64(body, uint64(r.Epoch))
	body = binary.BigEndian.AppendUint16(body, uint16(len(r.Key)))
	body = append(append(body, r.Key...), r.Data...)
	sealed := SealFrame("record", body)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(sealed))), sealed...)
}

func decodeRecord(sealed []byte) (*Record, error) {
	body, err := OpenFrame("record", sealed)
	if err != nil {
		return nil, err
	}
	if len(body) < recordHeader {
		return nil, fmt.Errorf("%d bytes, at least %d", len(body), recordHeader)
	}
	r := &Record{Kind: RecordKind(body[0]), Number: binary.BigEndian.Uint64(body[1:]), Epoch: Epoch(binary.BigEndian.Uint64(body[9:]))}
	key, rest := int(binary.BigEndian.Uint16(body[17:])), body[recordHeader:]
	if len(rest) < key {
		return nil, fmt.Errorf("a key of %d bytes in a record of %d", key, len(body))
	}
	r.Key, r.Data = string(rest[:key]), rest[key:]
	return r, nil
}

// follows checks a record, and that it comes after the one before.
func (b *backupReader) follows(r *Record) error {
	before := b.kind
	b.kind = r.Kind
	switch {
	case (r.Kind == RecordState) != (b.state == nil):
		return errors.New("the state of the store comes first, and once")
	case r.Kind < before && !(r.Kind == RecordRevision && before == RecordOutcome):
		return fmt.Errorf("a record of kind %d after one of kind %d", r.Kind, before)
	}
	switch r.Kind {
	case RecordState:
		b.state = new(State)
		if err := json.Unmarshal(r.Data, b.state); err != nil {
			return err
		}
		b.entry = Head(b.state.Checkpoint)
		b.revision = max(b.state.Oldest, 1) - 1
		return nil
	case RecordObject:
		if r.Key <= b.key && b.key != "" || len(r.Data) > MaxObject {
			return fmt.Errorf("object %q of %d bytes after object %q", r.Key, len(r.Data), b.key)
		}
		b.key = r.Key
		return CheckKey(r.Key)
	case RecordRevision:
		if b.revision++; r.Number != b.revision || len(r.Data) == 0 {
			return fmt.Errorf("revision %d of %d bytes where revision %d comes", r.Number, len(r.Data), b.revision)
		}
		return nil
	case RecordOutcome:
		if r.Number != b.revision || before != RecordRevision || len(r.Data) > MaxOutcome {
			return fmt.Errorf("an outcome of revision %d after revision %d", r.Number, b.revision)
		}
		return nil
	case RecordEntry:
		e, err := ParseEntry(r.Data)
		if err != nil {
			return err
		}
		if r.Number != e.Sequence || e.Sequence != b.entry.Sequence+1 {
			return fmt.Errorf("audit entry %d after entry %d", e.Sequence, b.entry.Sequence)
		}
		b.entry = Head{Sequence: e.Sequence, Hash: e.Hash}
		return nil
	}
	return fmt.Errorf("a record of kind %d", r.Kind)
}

// end checks that everything was there.
func (b *backupReader) end(r *Record, sum []byte) error {
	switch {
	case !bytes.Equal(r.Data, sum):
		return errors.New("the checksum of the whole does not match")
	case b.state == nil:
		return errors.New("there is no state of the store")
	case b.revision != b.state.Revision:
		return fmt.Errorf("the last revision is %d, and the state says %d", b.revision, b.state.Revision)
	case b.entry != b.state.Audit:
		return fmt.Errorf("the last audit entry is %s, and the state says %s", b.entry, b.state.Audit)
	}
	if _, err := b.in.ReadByte(); err != io.EOF {
		return errors.New("more follows it")
	}
	return nil
}
