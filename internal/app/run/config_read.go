package run

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
)

const (
	// FileSizeMax is the largest configuration file, in bytes.
	FileSizeMax = 1 << 20
	// FilesMax is the most files of conf.d.
	FilesMax = 100
	// Directory stands beside a configuration file; its files ending in Suffix are read after
	// it, in the order of their names.
	Directory = "conf.d"
	// Suffix is that of the files of Directory.
	Suffix = ".yaml"
)

// Setting is one value of a file.
type Setting struct {
	// Name is that of the flag, without dashes.
	Name string
	// Values are as on a command line: one, or those of a list.
	Values []string
	// list reports whether the file has a list.
	list bool
	File string
	Line int // from 1
}

// Where is the place of the setting, FILE:LINE.
func (s Setting) Where() string { return fmt.Sprintf("%s:%d", s.File, s.Line) }

func (s Setting) same(o Setting) bool { return s.list == o.list && slices.Equal(s.Values, o.Values) }

// Settings are what the files say, the last of them where several say something.
type Settings struct {
	// Files are those that were read, in this order.
	Files []string
	of    map[string]Setting
}

// Of is the setting of a name.
func (s *Settings) Of(name string) (of Setting, ok bool) {
	if s != nil {
		of, ok = s.of[name]
	}
	return of, ok
}

// notInFiles are flags of one run, which no file can have, and why.
var notInFiles = map[string]string{
	"help": "help", "version": "help", "verbose": "log-level is for files", "once": "it is for one run", "json": "it is for one run",
	"config": "files do not name files; those of " + Directory + " are read", "print-config": "it is for one run",
	"take-over": "it is asked for once, by a person", "accept-policy": "it is asked for once, by a person",
}

// InFiles reports whether a file may have the setting of a flag.
func InFiles(flag string) bool { return notInFiles[flag] == "" }

// secrets are settings whose values are nobody's business. 0 and 1 are no secrets: they are
// none, and OpenSM's default.
var secrets = []string{"sm-key", "sa-key"}

func secret(name string, values []string) bool {
	if !slices.Contains(secrets, name) || len(values) != 1 {
		return false
	}
	v, err := strconv.ParseUint(values[0], 0, 64)
	return err != nil || v > 1
}

// Read reads the file at path, and those of conf.d beside it. Every value is checked by
// setting the flag of its name in scratch, which is of no use afterwards. The error has all
// faults of all files, a line each, with file, line, column and what was expected.
func Read(path string, scratch *pflag.FlagSet) (*Settings, error) {
	s := &Settings{of: map[string]Setting{}}
	var faults []error
	files, err := beside(path)
	if err != nil {
		faults = append(faults, err)
	}
	for _, file := range append([]string{path}, files...) {
		if err := s.read(file, scratch); err != nil {
			faults = append(faults, err)
		}
		s.Files = append(s.Files, file)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return s, nil
}

// beside are the files of conf.d beside a file.
func beside(path string) (files []string, err error) {
	dir := filepath.Join(filepath.Dir(path), Directory)
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s: no directory: want one, or none of this name", dir)
	case info.Mode().Perm()&0o002 != 0:
		return nil, writable(dir, info)
	}
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, ".yml"):
			return nil, fmt.Errorf("%s: would not be read: want a name that ends in %s", filepath.Join(dir, name), Suffix)
		case strings.HasSuffix(name, Suffix):
			files = append(files, filepath.Join(dir, name))
		}
	}
	if len(files) > FilesMax {
		return nil, fmt.Errorf("%s: %d files: want at most %d", dir, len(files), FilesMax)
	}
	return files, nil
}

func writable(path string, info fs.FileInfo) error {
	return fmt.Errorf("%s: mode %04o: everybody can write it, and so steer the manager: want it without write access for others", path, info.Mode().Perm())
}

// read reads one file.
func (s *Settings) read(path string, scratch *pflag.FlagSet) error {
	file, err := files.Open(path, FileSizeMax)
	if err != nil {
		return err
	}
	defer file.Close()
	info := file.Info()
	if info.Mode().Perm()&0o002 != 0 {
		return writable(path, info)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	r := reader{scratch: scratch, file: path, others: info.Mode().Perm()&0o077 != 0, mode: info.Mode().Perm(), into: s.of}
	r.all(string(text))
	return r.Err(path)
}

// reader reads one file.
type reader struct {
	policyfile.YAMLTree
	scratch *pflag.FlagSet
	file    string
	others  bool // can read the file
	mode    fs.FileMode
	into    map[string]Setting
}

func (r *reader) all(text string) {
	root := r.Parse(text, "")
	if root == nil {
		return
	}
	readers := map[string]func(ast.Node){}
	r.scratch.VisitAll(func(f *pflag.Flag) {
		readers[f.Name] = func(v ast.Node) { r.setting(f, v) }
	})
	// Keys that no file may have are known here, so that it is said why.
	known := r.Names()
	readers[""] = func(n ast.Node) {
		pair, _ := n.(*ast.MappingValueNode) // it is one
		name := pair.Key.GetToken().Value
		r.Fault(policyfile.YAMLPos(pair.Key), "a flag of ibwarden run without its dashes", "setting %q%s", name, names.DidYouMean(name, known))
	}
	r.Fields(root, "the configuration", readers)
}

// Names are the settings that a file may have.
func (r *reader) Names() []string { return Names(r.scratch) }

// Names are those of the flags whose settings a file may have, sorted.
func Names(flags *pflag.FlagSet) (list []string) {
	flags.VisitAll(func(f *pflag.Flag) {
		if InFiles(f.Name) {
			list = append(list, f.Name)
		}
	})
	slices.Sort(list)
	return list
}

// setting reads the value of one flag.
func (r *reader) setting(f *pflag.Flag, node ast.Node) {
	at := policyfile.YAMLPos(node)
	if why := notInFiles[f.Name]; why != "" {
		r.Fault(at, "it on the command line only: "+why, "setting %q in a file", f.Name)
		return
	}
	s := Setting{Name: f.Name, File: r.file, Line: at.Line}
	slice, isList := f.Value.(pflag.SliceValue)
	switch items, list := node.(*ast.SequenceNode); {
	case f.Value.Type() == "bool":
		if !r.truth(f, node, &s) {
			return
		}
	case list && isList:
		s.list = true
		for _, item := range items.Values {
			text, ok := r.Scalar(item, "an entry of "+f.Name, "a text")
			if !ok {
				return
			}
			s.Values = append(s.Values, text.S)
		}
	default:
		text, ok := r.Scalar(node, f.Name, expected(f))
		if !ok {
			return
		}
		if number(f) && len(text.S) > 1 && text.S[0] == '0' && text.S[1] >= '0' && text.S[1] <= '9' {
			r.Fault(at, "a number without a leading zero, which some read as octal", "%q for %s", text.S, f.Name)
			return
		}
		s.Values = []string{text.S}
	}
	var err error
	if s.list {
		err = slice.Replace(s.Values)
	} else {
		err = f.Value.Set(s.Values[0])
	}
	if err != nil {
		r.Fault(at, expected(f), "%q for %s", strings.Join(s.Values, ","), f.Name)
		return
	}
	if r.others && secret(s.Name, s.Values) {
		r.Fault(at, fmt.Sprintf("a file that only its owner can read (0600, not %04o)", r.mode), "%s, a secret", s.Name)
		return
	}
	r.into[s.Name] = s
}

func (r *reader) truth(f *pflag.Flag, node ast.Node, s *Setting) bool {
	if _, ok := node.(*ast.BoolNode); !ok {
		r.Fault(policyfile.YAMLPos(node), "true or false", "%s for %s", policyfile.Describe(node), f.Name)
		return false
	}
	s.Values = []string{strconv.FormatBool(r.Truth(node, f.Name))}
	return true
}

// number reports whether a flag takes a whole number.
func number(f *pflag.Flag) bool {
	t := f.Value.Type()
	return strings.HasPrefix(t, "int") || strings.HasPrefix(t, "uint")
}

// expected says what a flag takes.
func expected(f *pflag.Flag) string {
	switch t := f.Value.Type(); {
	case t == "bool":
		return "true or false"
	case t == "duration":
		return "a time with its unit, such as 500ms, 10s or 1m30s"
	case t == "uint8":
		return policy.NumberRange(0, 255)
	case number(f):
		return "a whole number"
	case t == "stringSlice":
		return "a text, or a list of texts"
	}
	return "a text"
}
