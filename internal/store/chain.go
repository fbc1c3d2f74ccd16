package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Hash is a SHA-256. In JSON it is 64 hexadecimal digits.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText makes 64 lower-case hexadecimal digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads what MarshalText made.
func (h *Hash) UnmarshalText(text []byte) error {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) != len(h) {
		return fmt.Errorf("hash %q: want %d hexadecimal digits", text, 2*len(h))
	}
	copy(h[:], b)
	return nil
}

// Sum is the hash of bytes.
func Sum(data []byte) Hash { return sha256.Sum256(data) }

// Head is the end of the audit log: the number and the hash of its last entry, both zero
// while there is none. It stands for all entries up to it.
type Head struct {
	Sequence uint64 `json:"sequence"`
	Hash     Hash   `json:"hash"`
}

func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Sequence, h.Hash) }

// ParseHead reads what String made: SEQUENCE:HASH.
func ParseHead(text string) (Head, error) {
	sequence, hash, ok := strings.Cut(text, ":")
	var h Head
	n, err := strconv.ParseUint(sequence, 10, 64)
	if ok && err == nil {
		h.Sequence = n
		err = h.Hash.UnmarshalText([]byte(hash))
	}
	if !ok || err != nil || h.String() != text {
		return Head{}, fmt.Errorf("head of an audit log %.80q: want SEQUENCE:HASH", text)
	}
	return h, nil
}

// Checkpoint is where the audit log begins after a trim: the last entry that was removed.
// It is zero if none was.
type Checkpoint struct {
	Sequence uint64 `json:"sequence"`
	Hash     Hash   `json:"hash"`
}

// Decision is what was decided about a request.
type Decision string

// Decisions.
const (
	Accepted Decision = "accepted"
	Refused  Decision = "refused"
)

// Entry is an entry of the audit log. Each text has at most MaxField bytes.
type Entry struct {
	Sequence uint64      `json:"sequence"` // from 1, without gaps
	Time     time.Time   `json:"time"`     // UTC, to the nanosecond
	Caller   string      `json:"caller,omitempty"`
	Tenant   string      `json:"tenant,omitempty"`
	Action   string      `json:"action"`
	Object   string      `json:"object,omitempty"`
	Decision Decision    `json:"decision"`
	Reason   string      `json:"reason,omitempty"`
	Count    uint64      `json:"count,omitempty"`    // of refusals of one kind that are one entry, from Since to Time; 0 for a decision of its own
	Since    time.Time   `json:"since,omitzero"`     // UTC, to the nanosecond
	Request  string      `json:"request,omitempty"`  // the ID of the request
	Revision uint64      `json:"revision,omitempty"` // that the request made, or is about
	Digest   Hash        `json:"digest,omitzero"`    // of the revision's data, if the entry was committed with it
	Begins   *Checkpoint `json:"checkpoint,omitempty"`
	Previous Hash        `json:"previous"` // the hash of the entry before; zero for the first
	Hash     Hash        `json:"-"`
}

// hashMark is what divides the content of a line from its hash.
const hashMark = `,"hash":"`

// content is the line up to hashMark.
func (e *Entry) content() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(e); err != nil {
		panic(err) // no field can fail: check has looked at the time
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("}\n"))
}

// Line is the entry as a line of JSON, without the end of the line.
func (e *Entry) Line() []byte {
	return append(append(append(e.content(), hashMark...), e.Hash.String()...), `"}`...)
}

// ParseEntry reads what Line made, and nothing else: the fields in the same order, with no other
// spaces and no other fields. It does not check the hash; Verify does.
func ParseEntry(line []byte) (Entry, error) {
	var e Entry
	if len(line) > MaxLine {
		return e, tooLarge("an audit entry", len(line), MaxLine, "bytes")
	}
	i := bytes.LastIndex(line, []byte(hashMark))
	if i < 0 || !bytes.HasSuffix(line, []byte(`"}`)) || len(line) < i+len(hashMark)+2 {
		return e, errors.New("an audit entry ends with its hash")
	}
	content := append(bytes.Clone(line[:i]), '}')
	if err := json.Unmarshal(content, &e); err != nil {
		return Entry{}, fmt.Errorf("an audit entry: %w", err)
	}
	if err := e.Hash.UnmarshalText(line[i+len(hashMark) : len(line)-2]); err != nil {
		return Entry{}, err
	}
	if err := e.check(); err != nil {
		return Entry{}, err
	}
	if !bytes.Equal(e.Line(), line) {
		return Entry{}, errors.New("an audit entry that is not written as entries are: fields, their order or their form differ")
	}
	return e, nil
}

// check says what is wrong with the fields that a caller sets.
func (e *Entry) check() error {
	if e.Action == "" {
		return fmt.Errorf("%w: an audit entry without an action", ErrInvalid)
	}
	if e.Decision != Accepted && e.Decision != Refused {
		return fmt.Errorf("%w: decision %q, want %q or %q", ErrInvalid, e.Decision, Accepted, Refused)
	}
	if y := e.Time.UTC().Year(); e.Time.IsZero() || y < 1 || y > 9999 {
		return fmt.Errorf("%w: an audit entry with the time %v", ErrInvalid, e.Time)
	}
	if y := e.Since.UTC().Year(); y < 1 || y > 9999 || (e.Count > 0) == e.Since.IsZero() {
		return fmt.Errorf("%w: an audit entry of %d decisions since %v", ErrInvalid, e.Count, e.Since)
	}
	for _, f := range []struct{ name, text string }{
		{"caller", e.Caller}, {"tenant", e.Tenant}, {"action", e.Action}, {"object", e.Object},
		{"reason", e.Reason}, {"request", e.Request},
	} {
		if len(f.text) > MaxField {
			return tooLarge("the "+f.name+" of an audit entry", len(f.text), MaxField, "bytes")
		}
	}
	return nil
}

// Link makes entries out of what a commit has: it numbers them after a head, chains them,
// and enters the digest of the revision that is committed with them, whose number is
// revision (data is nil if there is none). It returns the new head. Bytes that are not
// UTF-8 are replaced, so that an entry reads back as it was hashed.
func Link(head Head, drafts []Entry, revision uint64, data []byte) ([]Entry, Head) {
	out := make([]Entry, 0, len(drafts))
	for _, e := range drafts {
		e.Begins, e.Digest = nil, Hash{}
		if data != nil && e.Revision == revision {
			e.Digest = Sum(data)
		}
		head = e.link(head)
		out = append(out, e)
	}
	return out, head
}

// LinkTrim makes the entry that states a checkpoint.
func LinkTrim(head Head, draft Entry, c Checkpoint) (Entry, Head) {
	draft.Begins, draft.Digest = &c, Hash{}
	head = draft.link(head)
	return draft, head
}

func (e *Entry) link(head Head) Head {
	e.Sequence, e.Previous = head.Sequence+1, head.Hash
	e.Time, e.Since = e.Time.UTC().Round(0), e.Since.UTC().Round(0)
	for _, f := range []*string{&e.Caller, &e.Tenant, &e.Action, &e.Object, &e.Reason, &e.Request} {
		*f = strings.ToValidUTF8(*f, "\uFFFD")
		if len(*f) > MaxField { // a replacement is longer than what it replaces
			*f = strings.ToValidUTF8((*f)[:MaxField], "")
		}
	}
	e.Hash = Sum(e.content())
	return Head{Sequence: e.Sequence, Hash: e.Hash}
}
