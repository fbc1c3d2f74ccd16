package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDefaultVersion(t *testing.T) {
	at := time.Date(2026, 11, 23, 15, 6, 55, 0, time.UTC)
	for tags, want := range map[string]string{
		"": "0.0~git20261123.150655.8f9ca442", "v1.2.3": "1.2.3", "v1.2.3-rc.1": "1.2.3~rc.1", "v2.0.0\nv1.9.0": "2.0.0",
	} {
		if got := defaultVersion(tags, at, "8f9ca442a0fd61b7"); got != want || !versions.MatchString(got) {
			t.Errorf("tags %q: %q, want %q", tags, got, want)
		}
	}
}

// What cannot be built is said before anything is.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"":                        "nothing to build",
		"tarball":                 `"tarball": want deb, rpm`,
		"-arch z80 deb":           `processor "z80": want amd64`,
		"-version 1.2-3 deb":      `version "1.2-3": want`,
		"-version 1.2;reboot deb": `version "1.2;reboot": want`,
		"-version $(id) rpm":      `version "$(id)": want`,
	} {
		out := filepath.Join(t.TempDir(), "out")
		err := run(t.Context(), append([]string{"-o", out}, strings.Fields(args)...), io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("release %s: %v, want %q", args, err, want)
		}
		if made, _ := filepath.Glob(filepath.Join(out, "*")); len(made) > 0 {
			t.Errorf("release %s: wrote %q", args, made)
		}
	}
}

// A file that could not be written whole is not there.
func TestWrite(t *testing.T) {
	var said bytes.Buffer
	r := &release{out: t.TempDir(), said: &said}
	err := r.write("half", func(w io.Writer) error {
		if _, err := io.WriteString(w, "half"); err != nil {
			return err
		}
		return io.ErrUnexpectedEOF
	})
	if err == nil || !strings.Contains(err.Error(), "half") {
		t.Errorf("%v, want an error that names the file", err)
	}
	if err := r.write("whole", func(w io.Writer) error { _, err := io.WriteString(w, "whole"); return err }); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(r.out)
	if err != nil || len(entries) != 1 || entries[0].Name() != "whole" || said.String() != filepath.Join(r.out, "whole")+"\n" {
		t.Errorf("%v, %v, said %q", entries, err, said.String())
	}
}
