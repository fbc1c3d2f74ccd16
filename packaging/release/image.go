package main

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// nobody is the user and the group that the image runs as unless it is told another:
	// a fabric behind a socket, a snapshot or a simulation needs no more. The MAD devices
	// of a host belong to root: with them it is run as user 0, without capabilities.
	nobody = 65532
	// dataMode is that of the data directory, which keeps the master secret.
	dataMode = 0o700
)

// image writes an OCI image archive, with an image for each processor: the program, its
// licences and settings, and nothing else. It has no certificates of authorities: who has
// a webhook on https mounts those that he trusts.
func (r *release) image() error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, arch := range r.arches {
		img, err := r.imageFor(arch)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}, Annotations: map[string]string{
				"org.opencontainers.image.ref.name": r.source.version, "io.containerd.image.name": "ibwarden:" + r.imageTag(),
			}}})
	}
	dir := filepath.Join(r.work, "image")
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	return r.write("ibwarden_"+r.source.version+"_image.tar", func(w io.Writer) error {
		t := tar.NewWriter(w)
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || path == dir {
				return err
			}
			name, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			e := entry{name: filepath.ToSlash(name), mode: 0o644}
			if d.IsDir() {
				e.mode, e.dir = 0o755, true
				return r.entry(t, e)
			}
			if e.text, err = os.ReadFile(path); err != nil {
				return err
			}
			return r.entry(t, e)
		})
		if err != nil {
			return err
		}
		return t.Close()
	})
}

// imageTag is the version as a tag, which may not have every sign of a version.
func (r *release) imageTag() string {
	return string(bytes.Map(func(c rune) rune {
		if c == '~' || c == '+' {
			return '-'
		}
		return c
	}, []byte(r.source.version)))
}

func (r *release) imageFor(arch string) (v1.Image, error) {
	program, err := r.program(platform{"linux", arch})
	if err != nil {
		return nil, err
	}
	m, err := r.common()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, e := range []entry{
		{name: "etc", mode: 0o755, dir: true},
		{name: "etc/group", mode: 0o644, text: []byte("root:x:0:\nibwarden:x:65532:\n")},
		{name: "etc/ibwarden", mode: 0o755, dir: true},
		{name: "etc/passwd", mode: 0o644, text: []byte("root:x:0:0:root:/:/\nibwarden:x:65532:65532:ibwarden:/var/lib/ibwarden:/\n")},
		{name: "run", mode: 0o755, dir: true},
		{name: "run/ibwarden", mode: dataMode, dir: true, owner: nobody},
		{name: "tmp", mode: 0o1777, dir: true},
		{name: "usr", mode: 0o755, dir: true},
		{name: "usr/bin", mode: 0o755, dir: true},
		{name: "usr/bin/ibwarden", mode: 0o755, from: program},
		{name: "usr/share", mode: 0o755, dir: true},
		{name: "usr/share/licenses", mode: 0o755, dir: true},
		{name: "usr/share/licenses/ibwarden", mode: 0o755, dir: true},
		{name: "usr/share/licenses/ibwarden/LICENSE", mode: 0o644, from: r.source.at("LICENSE")},
		{name: "usr/share/licenses/ibwarden/LINKED", mode: 0o644, from: m.licences},
		{name: "var", mode: 0o755, dir: true},
		{name: "var/lib", mode: 0o755, dir: true},
		{name: "var/lib/ibwarden", mode: dataMode, dir: true, owner: nobody},
	} {
		if err := r.entry(t, e); err != nil {
			return nil, err
		}
	}
	if err := t.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON), layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Created, file.Architecture, file.OS = v1.Time{Time: r.source.time}, arch, "linux"
	file.History = []v1.History{{Created: file.Created, CreatedBy: "ibwarden packaging/release"}}
	file.Config = v1.Config{
		Entrypoint: []string{"/usr/bin/ibwarden"}, Cmd: imageCommand, User: "65532:65532", WorkingDir: "/",
		Env:    []string{"PATH=/usr/bin", "IBWARDEN_DATA=/var/lib/ibwarden"},
		Labels: r.labels(),
	}
	return mutate.ConfigFile(img, file)
}

// imageCommand is what the image does when it is not told.
var imageCommand = []string{"--help"}

// labels are the annotations of OCI's specification.
func (r *release) labels() map[string]string {
	const of = "org.opencontainers.image."
	return map[string]string{
		of + "title": "ibwarden", of + "description": summary, of + "version": r.source.version, of + "revision": r.source.commit,
		of + "created": r.source.time.Format(timeFormat), of + "licenses": "Apache-2.0", of + "source": homepage, of + "url": homepage,
		"io.ibwarden.go": runtime.Version(),
	}
}
