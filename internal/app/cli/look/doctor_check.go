// doctor*.go: tells what of a host, its adapters and its fabric is ready for a subnet
// manager, what is missing, and the command that fixes it. Look reads facts below a root
// directory, Survey takes those of a fabric that was read, and Examine makes checks of
// both. Nothing is written.

package look

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
)

// Status is the result of a check.
type Status string

// The results.
const (
	OK Status = "ok"
	// Warning is something to know that prevents no reading.
	Warning Status = "warning"
	// Missing prevents the reading of the fabric.
	Missing Status = "missing"
	// Skipped was not looked at, and the text says why.
	Skipped Status = "skipped"
)

// Check is one thing that was looked at.
type Check struct {
	// Subject is what was looked at, such as "port mlx5_0/1".
	Subject string `json:"subject"`
	Status  Status `json:"status"`
	// Text is the result in words.
	Text string `json:"text"`
	// Commands are what to run about it.
	Commands []string `json:"commands"`
}

// DoctorReport is the result of an examination.
type DoctorReport struct {
	// Ready reports whether the fabric can be audited from here: nothing is missing.
	Ready bool `json:"ready"`
	// Fabric is what the commands name with --fabric.
	Fabric string  `json:"fabric"`
	Checks []Check `json:"checks"`
	// Next are the commands to go on with; none where something is missing.
	Next []string `json:"next"`
	// Port is the port of the adapter that --fabric takes, as DEVICE/PORT; empty for none.
	Port string `json:"port"`
	// Surveyed is what was read of the fabric; nil where nothing was.
	Surveyed *Survey `json:"survey"`

	// worst is how bad something is that another adapter or port may make up for.
	worst Status
}

// Choice is what is to be read.
type Choice struct {
	// Fabric is what --fabric names.
	Fabric string
	// GUID is that of the local port, 0 for any.
	GUID ib.PortGUID
}

// adapter reports whether the fabric is behind an adapter of the host, and which place
// of it is meant, as in "umad:mlx5_0/1".
func (c Choice) adapter() (place string, is bool) {
	kind, place, _ := strings.Cut(c.Fabric, ":")
	return place, kind == "umad"
}

// add adds a check. What devices and programs say of themselves is in the text.
func (r *DoctorReport) add(status Status, subject, text string, commands ...string) {
	c := Check{Subject: names.Printable(subject), Status: status, Text: names.Printable(text), Commands: []string{}}
	for _, x := range commands {
		if x != "" {
			c.Commands = append(c.Commands, names.Printable(x))
		}
	}
	r.Checks = append(r.Checks, c)
}

func (r *DoctorReport) has(s Status) bool {
	return slices.ContainsFunc(r.Checks, func(c Check) bool { return c.Status == s })
}

// word is a name as a word of a command for a shell; ok is false for one that
// a shell would take for more than that: there is no command with it.
func word(name string) (string, bool) {
	for _, r := range name {
		if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=/@+-", r) {
			return "", false
		}
	}
	return name, name != "" && name[0] != '-'
}

// doctorCommand is a doctorCommand with names in it; empty if one of them is no word.
func doctorCommand(format string, with ...string) string {
	words := make([]any, 0, len(with))
	for _, w := range with {
		ok := false
		if w, ok = word(w); !ok {
			return ""
		}
		words = append(words, w)
	}
	return fmt.Sprintf(format, words...)
}

// CheckHost examines what was found of a host.
func CheckHost(f *Facts, want Choice) *DoctorReport {
	r := &DoctorReport{Fabric: want.Fabric, Checks: []Check{}, Next: []string{}, worst: Warning}
	if place, is := want.adapter(); !is {
		r.add(Skipped, "adapters", "--fabric "+want.Fabric+" needs no adapter of this host", "ibwarden doctor --fabric umad")
	} else {
		port, err := choose(f, place, want.GUID)
		if err != nil || f.Access[port.MAD] != nil || f.omniPath(port.Device) {
			r.worst = Missing
		}
		r.adapters(f)
		r.modules(f)
		r.ports(f)
		r.chosen(f, port, err)
	}
	r.own(f)
	r.Ready = !r.has(Missing)
	return r
}

// Finish adds what was read of the fabric, or why it could not be, and says how to go on.
// survey is nil where nothing was read; hostOnly says that nothing was to be.
func (r *DoctorReport) Finish(survey *Survey, err error, hostOnly bool) {
	switch {
	case err != nil:
		r.add(Missing, "fabric "+r.Fabric, "it cannot be read: "+err.Error())
	case survey != nil:
		r.Surveyed = survey
		r.fabric(survey)
	case hostOnly:
		r.add(Skipped, "fabric "+r.Fabric, "--host-only: nothing was sent")
	default:
		r.add(Skipped, "fabric "+r.Fabric, "there is no way to it before what is missing above is fixed")
	}
	r.Ready = !r.has(Missing)
	if !r.Ready {
		return
	}
	for _, c := range []string{
		"ibwarden audit --fabric %s", "ibwarden prove --fabric %s", "ibwarden snapshot --fabric %s -o now.snap",
		"ibwarden plan --fabric %s --policy policy.yaml",
	} {
		if c = doctorCommand(c, r.Fabric); c != "" {
			r.Next = append(r.Next, c)
		}
	}
}
