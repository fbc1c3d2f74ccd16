package daemon

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// Journal is where a change is written down before any of it is carried out.
type Journal interface {
	// Load gives the last entry; nil when there is none.
	Load() (*Entry, error)
	// Begin replaces what is there by a change that is about to begin. When it
	// returns, the change outlives a crash.
	Begin(*Entry) error
	// Note adds how the change goes on.
	Note(Note) error
}

// Entry is a change as a journal holds it.
type Entry struct {
	Change *plan.Change
	// Allowed is what the new policy allows.
	Allowed []observed.Partition
	// Raw is what the new policy makes of raw packets.
	Raw   isolation.Raw
	Notes []Note
}

// The states of a Note.
const (
	NoteBegun      = "begun"       // going on after a stop or a crash
	NoteStep       = "step"        // a step has held
	NoteDone       = "done"        // the fabric is at the new end, and proved
	NoteRolledBack = "rolled back" // the fabric is at the old end
	NoteStopped    = "stopped"     // something did not hold
)

// Note is how a change goes on.
type Note struct {
	State string `json:"state"`
	Text  string `json:"text"`
}

// Finished reports whether a change needs nothing more.
func (e *Entry) Finished() bool {
	if len(e.Notes) == 0 {
		return false
	}
	last := e.Notes[len(e.Notes)-1].State
	return last == NoteDone || last == NoteRolledBack
}

// FileJournal is a journal in a file: the change on its first line, a note on
// each further one. The file is synced before every return.
type FileJournal struct{ Path string }

const journalVersion = 1

// journalFileMax is the most bytes of a journal that is read.
const journalFileMax = 4 << 30

type journalHead struct {
	Version int                  `json:"version"`
	Blocks  []journalBlock       `json:"blocks"`
	Allowed []observed.Partition `json:"allowed"`
	Raw     string               `json:"raw,omitempty"` // missing: ignored
}

type journalBlock struct {
	Node      string   `json:"node"`
	Port      uint8    `json:"port"`
	Name      string   `json:"name"`
	Attribute uint16   `json:"attribute"`
	Modifier  uint32   `json:"modifier"`
	Elements  []string `json:"elements,omitempty"`
	Activate  bool     `json:"activate,omitempty"`
	Unread    bool     `json:"unread,omitempty"`
	Before    string   `json:"before"`
	After     string   `json:"after"`
}

// journalMode keeps others out: PortInfo holds the M_Key.
const journalMode = 0o600

// Begin replaces the file as a whole, so that a crash leaves the old or the
// new, and syncs file and directory.
func (j FileJournal) Begin(e *Entry) error {
	head := journalHead{Version: journalVersion, Blocks: []journalBlock{}, Allowed: e.Allowed, Raw: e.Raw.String()}
	for i := range e.Change.Blocks {
		b := &e.Change.Blocks[i]
		head.Blocks = append(head.Blocks, journalBlock{
			Node: b.Node.String(), Port: uint8(b.Port), Name: b.Name, Attribute: uint16(b.Attribute), Modifier: b.Modifier,
			Elements: b.Elements.Names(), Activate: b.Activate, Unread: b.Unread,
			Before: hex.EncodeToString(b.Before[:]), After: hex.EncodeToString(b.After[:]),
		})
	}
	line, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if err := files.Replace(j.Path, files.Bytes(append(line, '\n'))); err != nil {
		return fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return nil
}

// Note adds a line and syncs.
func (j FileJournal) Note(n Note) error {
	line, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.Path, os.O_WRONLY|os.O_APPEND, journalMode)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	if _, err = f.Write(append(line, '\n')); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		return fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return nil
}

// Load reads the file. A last line that a crash cut short is left out; a fault
// anywhere else is an error.
func (j FileJournal) Load() (*Entry, error) {
	data, err := files.Read(j.Path, journalFileMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	e, err := readJournal(data)
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", j.Path, err)
	}
	return e, nil
}

func readJournal(data []byte) (*Entry, error) {
	r := bufio.NewReader(bytes.NewReader(data))
	line, err := r.ReadBytes('\n')
	if err != nil {
		return nil, errors.New("line 1: want a change, with its end of line")
	}
	var head journalHead
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, fmt.Errorf("line 1: %w", err)
	}
	if head.Version != journalVersion {
		return nil, fmt.Errorf("version %d, want %d", head.Version, journalVersion)
	}
	e := &Entry{Change: &plan.Change{}, Allowed: head.Allowed}
	if head.Raw != "" {
		var ok bool
		if e.Raw, ok = isolation.ParseRaw(head.Raw); !ok {
			return nil, fmt.Errorf("raw %q: want ignored, denied or allowed", head.Raw)
		}
	}
	for i := range head.Blocks {
		b, err := head.Blocks[i].block()
		if err != nil {
			return nil, fmt.Errorf("block %d: %w", i, err)
		}
		e.Change.Blocks = append(e.Change.Blocks, b)
	}
	for _, p := range head.Allowed {
		if !p.Base.IsValid() {
			return nil, fmt.Errorf("partition %q: no partition number", p.Name)
		}
	}
	for n := 2; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return e, nil // nothing more, or cut short
		}
		var note Note
		if err := json.Unmarshal(line, &note); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		e.Notes = append(e.Notes, note)
	}
}

func (b *journalBlock) block() (plan.ChangedBlock, error) {
	out := plan.ChangedBlock{
		Port: ib.PortNum(b.Port), Name: b.Name, Attribute: mad.AttributeID(b.Attribute), Modifier: b.Modifier,
		Activate: b.Activate, Unread: b.Unread,
	}
	var err error
	if out.Node, err = ib.ParseNodeGUID(b.Node); err != nil {
		return out, err
	}
	var ok bool
	if out.Elements, ok = observed.ParseElements(b.Elements); !ok {
		return out, fmt.Errorf("elements %q: want names of PortInfo elements", b.Elements)
	}
	for _, x := range []struct {
		to   *[mad.DataSize]byte
		from string
	}{{&out.Before, b.Before}, {&out.After, b.After}} {
		raw, err := hex.DecodeString(x.from)
		if err != nil || len(raw) != len(x.to) {
			return out, fmt.Errorf("bytes %.20q: want %d in hexadecimal", x.from, len(x.to))
		}
		copy(x.to[:], raw)
	}
	return out, nil
}
