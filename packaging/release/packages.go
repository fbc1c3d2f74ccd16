package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
	"github.com/goreleaser/nfpm/v2/rpm"
)

const (
	maintainer = "The ibwarden authors <ibwarden@users.noreply.github.com>"
	homepage   = "https://github.com/ibwarden/ibwarden"
	summary    = "InfiniBand subnet manager that keeps tenants apart"
	about      = `ibwarden discovers an InfiniBand fabric, gives it addresses and routes,
programs the partition keys that keep tenants apart, and proves from what it
reads back that nobody can reach what they should not. It comes with a
simulated fabric.`
	starts = `The service reads the fabric and reports what is open; it changes nothing
unless /etc/ibwarden/ibwarden.yaml says so.`
)

// describe is what packages of all kinds say of themselves.
func (r *release) describe(arch string, contents files.Contents) *nfpm.Info {
	return nfpm.WithDefaults(&nfpm.Info{
		Name: "ibwarden", Arch: arch, Platform: "linux", Version: r.source.version, VersionSchema: "none",
		Section: "net", Priority: "optional", Maintainer: maintainer, Vendor: "ibwarden", Homepage: homepage, License: "Apache-2.0",
		DisableGlobbing: true, MTime: r.source.time,
		Overridables: nfpm.Overridables{Umask: 0o022, Contents: contents},
	})
}

// rpmCompression is known to the rpm of RHEL 8 and
// SLES 15, and to those after them.
const rpmCompression = "zstd"

func (r *release) debs() error {
	for _, arch := range r.arches {
		contents, err := r.contents(arch)
		if err != nil {
			return err
		}
		copyright, err := r.between("copyright", []byte(copyrightText))
		if err != nil {
			return err
		}
		changes, err := r.between("changelog.gz", zipped(r.debianChangelog()))
		if err != nil {
			return err
		}
		c := &list{contents, r.source.time}
		c.file(copyright, doc+"/copyright", 0o644)
		c.file(r.shared.licences, doc+"/LINKED", 0o644)
		c.file(changes, doc+"/changelog.gz", 0o644)
		c.file(r.source.at("packaging/debian/lintian-overrides"), "/usr/share/lintian/overrides/ibwarden", 0o644)
		c.file(filepath.Join(r.shared.completions, "_ibwarden"), "/usr/share/zsh/vendor-completions/_ibwarden", 0o644)
		info := r.describe(arch, c.files)
		info.Description = summary + "\n" + about + "\n\n" + starts
		info.Suggests = []string{"infiniband-diags"}
		info.Deb.Compression = "gzip:9" // lintian of Debian 12 does not know zstd; xz takes ten times as long
		info.Scripts = nfpm.Scripts{
			PreInstall: r.source.at("packaging/debian/preinst"), PostInstall: r.source.at("packaging/debian/postinst"), PreRemove: r.source.at("packaging/debian/prerm"), PostRemove: r.source.at("packaging/debian/postrm"),
		}
		if err := r.write(deb.Default.ConventionalFileName(info), func(w io.Writer) error { return deb.Default.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) rpms() error {
	for _, arch := range r.arches {
		contents, err := r.contents(arch)
		if err != nil {
			return err
		}
		changes, err := r.between("changelog.yaml", fmt.Appendf(nil, "- semver: %s-1\n  date: %s\n  packager: %s\n  changes:\n    - note: Built from commit %s.\n",
			r.source.version, r.source.time.Format(timeFormat), maintainer, r.source.commit))
		if err != nil {
			return err
		}
		c := &list{contents, r.source.time}
		for _, f := range c.files {
			if f.Type == files.TypeFile && (strings.HasPrefix(f.Destination, doc+"/") || strings.HasPrefix(f.Destination, "/usr/share/man/")) {
				f.Type = files.TypeRPMDoc
			}
		}
		c.add(files.TypeRPMLicense, r.source.at("LICENSE"), "/usr/share/licenses/ibwarden/LICENSE", 0o644)
		c.add(files.TypeRPMLicense, r.shared.licences, "/usr/share/licenses/ibwarden/LINKED", 0o644)
		c.file(filepath.Join(r.shared.completions, "_ibwarden"), "/usr/share/zsh/site-functions/_ibwarden", 0o644)
		c.own("/usr/share/licenses", "/usr/share/zsh")
		info := r.describe(arch, c.files)
		info.Description = about + "\n\n" + starts
		info.Release = "1"
		info.Changelog = changes
		info.RPM = nfpm.RPM{Summary: summary, Compression: rpmCompression, BuildHost: "reproducible", Packager: maintainer, Group: "System Environment/Daemons"}
		info.Scripts = nfpm.Scripts{
			PostInstall: r.source.at("packaging/rpm/post"), PreRemove: r.source.at("packaging/rpm/preun"), PostRemove: r.source.at("packaging/rpm/postun"),
		}
		if err := r.write(rpm.DefaultRPM.ConventionalFileName(info), func(w io.Writer) error { return rpm.DefaultRPM.Package(info, w) }); err != nil {
			return err
		}
	}
	return nil
}

// between writes a file in between.
func (r *release) between(name string, text []byte) (string, error) {
	path := filepath.Join(r.work, name)
	return path, os.WriteFile(path, text, 0o644)
}

// debianChangelog is the package's changelog in Debian's form: what it was built from.
func (r *release) debianChangelog() []byte {
	return fmt.Appendf(nil, "ibwarden (%s) unstable; urgency=medium\n\n  * Built from commit %s.\n\n -- %s  %s\n",
		r.source.version, r.source.commit, maintainer, r.source.time.Format(time.RFC1123Z))
}

// copyrightText is the package's copyright: whose it is, and where on Debian the text of its
// licence is.
const copyrightText = "ibwarden, " + homepage + `

Copyright 2026 the ibwarden authors

Licensed under the Apache License, Version 2.0; on Debian its text is in
/usr/share/common-licenses/Apache-2.0.

The program is linked with modules of others, whose copyrights and licences
are in /usr/share/doc/ibwarden/LINKED.
`
