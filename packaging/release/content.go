package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2/files"
)

const (
	// doc is where packages have documentation, with the name of the package.
	doc = "/usr/share/doc/ibwarden"
	// secretDirMode and secretMode keep what may hold an SM_Key or an M_Key from others.
	secretDirMode, secretMode = 0o750, 0o640
)

// made are the files that no processor makes different: manual pages, completions, the
// licences of what is linked.
type made struct{ man, completions, licences string }

// common makes them, once.
func (r *release) common() (*made, error) {
	if r.shared != nil {
		return r.shared, nil
	}
	m := &made{filepath.Join(r.work, "man"), filepath.Join(r.work, "completions"), filepath.Join(r.work, "licences")}
	env := []string{fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.source.time.Unix()), "GOOS=", "GOARCH=", "IBWARDEN_FABRIC="}
	if _, err := output(r.ctx, r.source.root, env, "go", "run", "./internal/app/manpages", m.man, m.completions); err != nil {
		return nil, err
	}
	pages, err := filepath.Glob(filepath.Join(m.man, "*.1"))
	if err != nil || len(pages) == 0 {
		return nil, fmt.Errorf("no manual pages (%v)", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(page+".gz", zipped(text), 0o644); err != nil {
			return nil, err
		}
		if err := os.Remove(page); err != nil {
			return nil, err
		}
	}
	text, err := r.licences()
	if err != nil {
		return nil, err
	}
	r.shared = m
	return m, os.WriteFile(m.licences, text, 0o644)
}

// zipped compresses as `gzip -9n` does: without a name and a time.
func zipped(text []byte) []byte {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is one of the package's own
	}
	_, _ = w.Write(text) // into memory
	_ = w.Close()
	return b.Bytes()
}

// contents are the files of a package for Linux, but for those that each kind of package
// has elsewhere.
func (r *release) contents(arch string) (files.Contents, error) {
	m, err := r.common()
	if err != nil {
		return nil, err
	}
	program, err := r.program(platform{"linux", arch})
	if err != nil {
		return nil, err
	}
	c := &list{time: r.source.time}
	c.dir("/etc/ibwarden", secretDirMode)
	c.dir("/etc/ibwarden/conf.d", secretDirMode)
	c.add(files.TypeConfigNoReplace, r.source.at("packaging/ibwarden.yaml"), "/etc/ibwarden/ibwarden.yaml", secretMode)
	c.file(program, "/usr/bin/ibwarden", 0o755)
	c.file(r.source.at("packaging/ibwarden.service"), "/usr/lib/systemd/system/ibwarden.service", 0o644)
	c.file(filepath.Join(m.completions, "ibwarden.bash"), "/usr/share/bash-completion/completions/ibwarden", 0o644)
	c.file(filepath.Join(m.completions, "ibwarden.fish"), "/usr/share/fish/vendor_completions.d/ibwarden.fish", 0o644)
	pages, err := filepath.Glob(filepath.Join(m.man, "*.1.gz"))
	if err != nil {
		return nil, err
	}
	for _, page := range pages {
		c.file(page, "/usr/share/man/man1/"+filepath.Base(page), 0o644)
	}
	tracked, err := r.source.git(r.ctx, "ls-files", "-z", "README.md", "docs/*.md", "docs/images", "examples", "scenarios")
	if err != nil {
		return nil, err
	}
	for _, name := range strings.Split(strings.TrimSuffix(tracked, "\x00"), "\x00") {
		to := name
		if strings.HasPrefix(name, "scenarios/") {
			to = "examples/" + name
		}
		c.file(r.source.at(name), doc+"/"+to, 0o644)
	}
	c.own(doc, "/usr/share/bash-completion", "/usr/share/fish")
	return c.files, nil
}

func (s *source) at(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// list is a list of files and directories of root.
type list struct {
	files files.Contents
	time  time.Time
}

func (l *list) add(kind, from, to string, mode fs.FileMode) {
	l.files = append(l.files, &files.Content{Source: from, Destination: to, Type: kind,
		FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: l.time}})
}

func (l *list) file(from, to string, mode fs.FileMode) { l.add(files.TypeFile, from, to, mode) }
func (l *list) dir(to string, mode fs.FileMode)        { l.add(files.TypeDir, "", to, mode) }

// own enters the directories named and those below them that have a file: rpm leaves
// behind what no package owns.
func (l *list) own(tops ...string) {
	dirs := map[string]bool{}
	for _, f := range l.files {
		for _, top := range tops {
			if !strings.HasPrefix(f.Destination, top+"/") {
				continue
			}
			for d := path.Dir(f.Destination); len(d) >= len(top); d = path.Dir(d) {
				dirs[d] = true
			}
		}
	}
	for _, d := range slices.Sorted(maps.Keys(dirs)) {
		l.dir(d, 0o755)
	}
}
