package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
)

// linked are the modules in a program, from what the linker wrote into it.
func linked(program string) (*debug.BuildInfo, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	for i, m := range info.Deps {
		if m.Replace != nil {
			info.Deps[i] = m.Replace
		}
	}
	return info, nil
}

// licenceFiles are the names of files that hold a licence or what it asks to pass on.
var licenceFiles = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-.].*)?$`)

// licences is the text of every licence of what is in the program: Go's, and the modules'.
func (r *release) licences() ([]byte, error) {
	program, err := r.program(platform{"linux", runtime.GOARCH})
	if err != nil {
		return nil, err
	}
	info, err := linked(program)
	if err != nil {
		return nil, err
	}
	dirs, err := r.source.moduleDirs(r)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	root, err := output(r.ctx, r.source.root, nil, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(&b, "The program ibwarden holds the following besides its own code.\n")
	if err := licence(&b, "the Go runtime and standard library", root); err != nil {
		return nil, err
	}
	for _, m := range info.Deps {
		dir, ok := dirs[m.Path]
		if !ok {
			return nil, fmt.Errorf("module %s is in the program, and go list does not know it", m.Path)
		}
		if err := licence(&b, m.Path+" "+m.Version, dir); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// moduleDirs are the directories of the modules that the build takes, by path.
func (s *source) moduleDirs(r *release) (map[string]string, error) {
	text, err := output(r.ctx, s.root, []string{"GOFLAGS=", "GOWORK=off"}, "go", "list", "-m", "-json=Path,Dir", "all")
	if err != nil {
		return nil, err
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(text)); ; {
		var m struct{ Path, Dir string }
		if err := d.Decode(&m); err == io.EOF {
			return dirs, nil
		} else if err != nil {
			return nil, err
		}
		dirs[m.Path] = m.Dir
	}
}

// licence writes the licence files of a module's directory.
func licence(b *bytes.Buffer, name, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var found []string
	for _, e := range entries {
		if e.Type().IsRegular() && licenceFiles.MatchString(e.Name()) {
			found = append(found, e.Name())
		}
	}
	if len(found) == 0 {
		return fmt.Errorf("%s: no licence in %s", name, dir)
	}
	slices.Sort(found)
	for _, f := range found {
		text, err := os.ReadFile(filepath.Join(dir, f))
		if err != nil {
			return err
		}
		fmt.Fprintf(b, "\n%s\n%s: %s\n\n%s\n", strings.Repeat("-", 72), name, f, bytes.TrimSpace(text))
	}
	return nil
}
