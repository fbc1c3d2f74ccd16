package opensm

import (
	"fmt"

	"github.com/ibwarden/ibwarden/internal/policy"
)

// Verdict says what becomes of a line.
type Verdict string

// The verdicts.
const (
	// Taken: ibwarden will do what the line says.
	Taken Verdict = "taken"
	// NotNeeded: what the line is for happens without it, or has no place here.
	NotNeeded Verdict = "not needed"
	// NotPossible: ibwarden does not do what the line says.
	NotPossible Verdict = "not possible"
)

// Line is what becomes of one line of a file, or of several in a row that are alike.
type Line struct {
	// File is the path of the file, as the caller named it; First and Last are the numbers
	// of the lines, from 1.
	File  string `json:"file"`
	First int    `json:"line"`
	Last  int    `json:"last_line"`
	// What says what stands there, without keys.
	What    string  `json:"what"`
	Verdict Verdict `json:"verdict"`
	// Becomes is the setting of ibwarden that stands for it; empty for none.
	Becomes string `json:"becomes,omitempty"`
	// Why is the reason, or what is to be known; empty where nothing is.
	Why string `json:"why,omitempty"`
	// lines is how many lines with something on them these are; 0 stands for 1.
	lines int
}

// Place is where the line stands: FILE:LINE, or FILE:FIRST-LAST.
func (l *Line) Place() string {
	if l.First == l.Last {
		return fmt.Sprintf("%s:%d", l.File, l.First)
	}
	return fmt.Sprintf("%s:%d-%d", l.File, l.First, l.Last)
}

// Default is an option that has OpenSM's default in force, where ibwarden does something else.
type Default struct {
	Option string `json:"option"`
	Value  string `json:"value"`
	// Why says what ibwarden does, and how to have it as before.
	Why string `json:"why"`
}

// Setting is one entry of ibwarden's configuration: a flag of `ibwarden run` and its value.
type Setting struct {
	Key string `json:"key"`
	// Value is the text of the flag; empty in JSON where it is a key.
	Value string `json:"-"`
	Shown string `json:"value"`
	// From says which line it comes from, or why it is there.
	From string `json:"from"`
}

// Text is one file: its path, for messages, and what it holds.
type Text struct {
	Path string
	Data []byte
}

// Report is what becomes of an OpenSM.
type Report struct {
	Lines []Line `json:"lines"`
	// AtDefault counts the options of opensm.conf that stand in it with OpenSM's own
	// default; Defaults are those, in the file or not, in place of which ibwarden does
	// something else.
	AtDefault int       `json:"at_default"`
	Defaults  []Default `json:"defaults"`
	// Configuration is what opensm.conf becomes, in order.
	Configuration []Setting `json:"configuration"`
	// Policy is what partitions.conf and the settings of ports become.
	Policy *policy.Policy `json:"-"`
	// Announced are differences between what OpenSM holds in its devices' tables and what
	// ibwarden will, beyond those that single lines name.
	Announced []string `json:"announced"`
	// MKey is OpenSM's one M_Key, 0 for none. It is for a file of its own.
	MKey uint64 `json:"-"`
	// BadKeys reports whether guid2mkey or neighbors has a line that cannot be read.
	BadKeys bool `json:"-"`
	// LIDs are the base LIDs of guid2lid by port GUID.
	LIDs map[uint64]uint16 `json:"-"`
	// RootGUIDs are the switches that root_guid_file names.
	RootGUIDs []uint64 `json:"-"`
	// Open reports whether there is no partitions.conf, so that every port is a full member of
	// the default partition.
	Open bool `json:"no_partitions_conf"`
}

// say adds a line.
func (r *Report) say(l Line) {
	if l.Last == 0 {
		l.Last = l.First
	}
	r.Lines = append(r.Lines, l)
}

// Count is how many lines have a verdict.
func (r *Report) Count(v Verdict) (n int) {
	for i := range r.Lines {
		if r.Lines[i].Verdict == v {
			n += max(r.Lines[i].lines, 1)
		}
	}
	return n
}
