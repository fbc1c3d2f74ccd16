package main

import (
	"fmt"
	"io"
	"net/url"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
)

// sboms writes what is in each program, as CycloneDX: the modules that the linker entered
// in it, and Go's library.
func (r *release) sboms() error {
	for _, p := range r.platforms() {
		program, err := r.program(p)
		if err != nil {
			return err
		}
		bom, err := r.bom(program)
		if err != nil {
			return err
		}
		err = r.write(r.name(p)+".cdx.json", func(w io.Writer) error {
			return cdx.NewBOMEncoder(w, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cdx.SpecVersion1_6)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *release) bom(program string) (*cdx.BOM, error) {
	info, err := linked(program)
	if err != nil {
		return nil, err
	}
	sum, err := fileSum(program)
	if err != nil {
		return nil, err
	}
	self := golang(cdx.ComponentTypeApplication, info.Main.Path, r.source.version)
	self.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sum)}}
	self.Licenses = &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}}
	self.ExternalReferences = &[]cdx.ExternalReference{{Type: cdx.ERTypeVCS, URL: homepage + "/commit/" + r.source.commit}}
	components := []cdx.Component{golang(cdx.ComponentTypeLibrary, "std", strings.TrimPrefix(info.GoVersion, "go"))}
	for _, m := range info.Deps {
		components = append(components, golang(cdx.ComponentTypeLibrary, m.Path, m.Version))
	}
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	bom := cdx.NewBOM()
	// The same program has the same number, another program another.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, sum).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: r.source.time.Format(timeFormat), Component: &self}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: self.BOMRef, Dependencies: &refs}}
	return bom, nil
}

// golang is a module as a component.
func golang(kind cdx.ComponentType, path, version string) cdx.Component {
	purl := "pkg:golang/" + path + "@" + url.PathEscape(version)
	return cdx.Component{BOMRef: purl, Type: kind, Name: path, Version: version, PackageURL: purl}
}
