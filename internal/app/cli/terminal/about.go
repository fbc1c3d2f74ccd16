// about*.go: reports the version of this program from the build information of the
// Go linker: version, commit and its time, whether the tree was modified, and the
// compiler. A value that was not recorded is empty. It reads nothing but the
// program itself.

package terminal

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
)

// ProgramVersion is what there is to say of a program.
type ProgramVersion struct {
	// Version is the module's, or "(devel)" for a build out of a tree.
	Version string `json:"version"`
	// Commit is what the tree was at, Time when that was made (RFC 3339, UTC),
	// Modified whether the tree had changes besides.
	Commit   string `json:"commit"`
	Time     string `json:"time"`
	Modified bool   `json:"modified"`
	// Go is the compiler's version, Platform the system and processor.
	Go       string `json:"go"`
	Platform string `json:"platform"`
	// JSON is the version of the documents that --json prints.
	JSON int `json:"json"`
}

// jsonVersion counts the times that a name in the documents changed (docs/json.md).
const jsonVersion = 2

// A release is told what it was built from by the linker (packaging/release): then these
// are not empty, and count instead of Go's own stamp. modified is true or false.
var version, commit, buildTime, modified string

// ThisProgram is the running program.
func ThisProgram() ProgramVersion {
	info, _ := debug.ReadBuildInfo() // nil without modules: then little is known
	p := of(info)
	if version != "" {
		p.Version, p.Commit, p.Time, p.Modified = version, commit, buildTime, modified == "true"
	}
	return p
}

func of(info *debug.BuildInfo) ProgramVersion {
	p := ProgramVersion{Version: "(devel)", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, JSON: jsonVersion}
	if info == nil {
		return p
	}
	if info.Main.Version != "" {
		p.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			p.Commit = s.Value
		case "vcs.time":
			p.Time = s.Value
		case "vcs.modified":
			p.Modified = s.Value == "true"
		}
	}
	return p
}

// String says it for people, on one line.
func (p ProgramVersion) String() string {
	from := ""
	if p.Commit != "" {
		from = ", commit " + p.Commit
		if p.Time != "" {
			from += " of " + p.Time
		}
		if p.Modified {
			from += " with changes"
		}
	}
	return fmt.Sprintf("ibwarden %s%s, %s, %s", p.Version, from, p.Go, p.Platform)
}

// Print writes String and the end of a line.
func (p ProgramVersion) Print(w io.Writer) error {
	_, err := fmt.Fprintln(w, p)
	return err
}
