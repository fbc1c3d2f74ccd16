package run

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/app/files"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/policy/policyfile"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// Policy is the policy file of a manager.
type Policy struct {
	// File is its name, NoPolicy for the default partition alone; "" where none is given.
	File    string
	Options policyfile.Options
}

// NoPolicy is what --policy says when there is to be none.
const NoPolicy = "none"

// defaultOnly leaves every port the default partition, as a limited member; its text is that of
// the revision in the service.
func defaultOnly() *policy.Policy { return &policy.Policy{Default: policy.Limited} }

const defaultOnlyText = "version: 1\ndefault: limited\n"

// Load reads the policy, or takes that of a fabric for which none is given. Its faults and warnings
// go to w. The file is read here and nowhere else: the text is that of the policy.
func (p Policy) Load(fabric string, w io.Writer) (loaded *policy.Policy, text string, err error) {
	switch {
	case p.File == NoPolicy:
		return defaultOnly(), defaultOnlyText, nil
	case p.File != "":
		return ReadPolicy(p.File, p.Options, w)
	case fabric == daemon.Demonstration:
		loaded, err = daemon.DemoPolicy()
		return loaded, "", err
	}
	return defaultOnly(), "", nil
}

// resource is the policy file as the service keeps it.
func (p Policy) resource(text string) resource.File {
	return resource.File{Name: p.File, Text: text, AllowBoth: p.Options.AllowBoth && p.File != NoPolicy}
}

// ReadPolicy reads a policy file; its faults and warnings go to w, a line each, with file, line and
// column.
func ReadPolicy(path string, o policyfile.Options, w io.Writer) (p *policy.Policy, text string, err error) {
	data, err := ReadBounded(path)
	if err != nil {
		return nil, "", terminal.WithMisuse(err)
	}
	if p, err = policyfile.Read(data, path, o); err != nil {
		return nil, "", Refused(path, err, w)
	}
	Warn(w, path, p.Warnings)
	return p, string(data), nil
}

// ReadBounded reads a file that is not larger than any policy may be.
func ReadBounded(path string) ([]byte, error) {
	return files.Read(path, policyfile.ConfSizeMax)
}

// Warn prints the warnings of a policy file.
func Warn(w io.Writer, path string, warnings []policy.Fault) {
	for _, f := range warnings {
		fmt.Fprintf(telemetry.LogAt(w, slog.LevelWarn), "%s:%s (warning)\n", path, f)
	}
}

// Refused prints every fault of a policy file, and returns their number as an error.
func Refused(path string, err error, w io.Writer) error {
	var faults *policy.Error
	if !errors.As(err, &faults) {
		return terminal.WithMisuse(err)
	}
	fmt.Fprintln(telemetry.LogAt(w, slog.LevelError), faults)
	return terminal.WithMisuse(fmt.Errorf("%s: %s; the whole policy is refused", path, terminal.Count(len(faults.Faults), "fault")))
}
