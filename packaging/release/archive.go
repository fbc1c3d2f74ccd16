package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const timeFormat = time.RFC3339

// entry is a file or a directory of a tar archive: what is in it is text, or the file from.
type entry struct {
	name  string
	mode  fs.FileMode
	dir   bool
	owner int
	text  []byte
	from  string
}

// entry writes one into an archive, with the time of the commit.
func (r *release) entry(t *tar.Writer, e entry) error {
	if e.from != "" {
		var err error
		if e.text, err = os.ReadFile(e.from); err != nil {
			return err
		}
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.text)), Uid: e.owner, Gid: e.owner, ModTime: r.source.time, Format: tar.FormatPAX}
	if e.dir {
		h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
	}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := t.Write(e.text)
	return err
}

// platforms are those of archives and lists: Linux on each processor, and for a release
// macOS too, on those that it runs on.
func (r *release) platforms() []platform {
	var out []platform
	for _, arch := range r.arches {
		out = append(out, platform{"linux", arch})
	}
	if r.all {
		for _, arch := range released {
			out = append(out, platform{"darwin", arch})
		}
	}
	return out
}

// name is that of a file for a platform, without its ending.
func (r *release) name(p platform) string {
	return "ibwarden_" + r.source.version + "_" + p.os + "_" + p.arch
}

// archives writes the program for each platform with its manual pages, completions and
// licences, for who does without packages.
func (r *release) archives() error {
	m, err := r.common()
	if err != nil {
		return err
	}
	for _, p := range r.platforms() {
		program, err := r.program(p)
		if err != nil {
			return err
		}
		top := r.name(p)
		entries := []entry{
			{name: top + "/ibwarden", mode: 0o755, from: program},
			{name: top + "/LICENSE", mode: 0o644, from: r.source.at("LICENSE")},
			{name: top + "/LINKED", mode: 0o644, from: m.licences},
			{name: top + "/README.md", mode: 0o644, from: r.source.at("README.md")},
		}
		for dir, from := range map[string]string{"man/man1": m.man, "completions": m.completions} {
			files, err := filepath.Glob(filepath.Join(from, "*"))
			if err != nil {
				return err
			}
			for _, f := range files {
				entries = append(entries, entry{name: top + "/" + dir + "/" + filepath.Base(f), mode: 0o644, from: f})
			}
		}
		slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare([]byte(a.name), []byte(b.name)) })
		if err := r.write(top+".tar.gz", func(w io.Writer) error { return r.archive(w, entries) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) archive(w io.Writer, entries []entry) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, e := range entries {
		if err := r.entry(t, e); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// sums writes SHA256SUMS of what was written before, as sha256sum -c reads it.
func (r *release) sums() error {
	var b bytes.Buffer
	for _, name := range slices.Sorted(slices.Values(r.made)) {
		sum, err := fileSum(filepath.Join(r.out, name))
		if err != nil {
			return err
		}
		fmt.Fprintf(&b, "%x  %s\n", sum, name)
	}
	return r.write("SHA256SUMS", func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err })
}

func fileSum(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return h.Sum(nil), err
}
