package look

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// guardedShown bounds the places that are named.
const guardedShown = 3

// Guarded are the places of a fabric from which nothing was read, or no more than who is
// there: a device answers so whose M_Key the reader did not have (M_KeyProtectBits 2 and 3),
// and one that hangs. In order; empty for none.
func Guarded(f *observed.Fabric) (places []string) {
	switch {
	case f.Self == nil:
		places = append(places, "this host's own port")
	case !f.Self.InfoRead:
		places = append(places, f.Self.String())
	}
	for _, p := range f.Silent() {
		places = append(places, "behind "+p.String())
	}
	for _, p := range f.EndPorts() {
		if p != f.Self && p.Reached && !p.InfoRead {
			places = append(places, p.String())
		}
	}
	return places
}

// SayGuarded says which places may be guarded by keys that the reader did not have, and
// where they may be had; nothing where there is none. Of a file its reader is meant.
func SayGuarded(w io.Writer, f *observed.Fabric, file bool) {
	places := Guarded(f)
	if len(places) == 0 {
		return
	}
	where := strings.Join(places[:min(len(places), guardedShown)], ", ")
	if more := len(places) - guardedShown; more > 0 {
		where += fmt.Sprintf(" and %d more", more)
	}
	who, hint := "this command does not have", ": --data DIR, the data directory of the manager, or --m-key-file FILE"
	if file {
		who, hint = "its reader did not have", ""
	}
	fmt.Fprintf(w, "ibwarden: %s did not answer (%s): guarded by M_Keys that %s%s; or it hangs\n", terminal.Count(len(places), "place"), terminal.Plain(where), who, hint)
}

// Live reads a fabric for a command, with its progress, and says which places may be guarded by
// keys that the command does not have. The error is one of exit.
func Live(c *cobra.Command, l link.Link, o sweep.Options) (daemon.Reading, error) {
	r, err := daemon.ReadShowing(c.Context(), l, o, terminal.ReadingProgress(c.ErrOrStderr()))
	if err != nil {
		return r, terminal.WithBad(err)
	}
	SayGuarded(c.ErrOrStderr(), r.Fabric, false)
	return r, nil
}

// EndPort is the end port that an argument of a command names. Where places did not answer
// it may be there: that it was not found is then no fault of the name.
func EndPort(f *observed.Fabric, argument, name string) (*observed.Port, error) {
	ends := f.EndPorts()
	p, err := views.FindEndPort(ends, name)
	silent := len(Guarded(f))
	switch {
	case err == nil:
		return p, nil
	case silent > 0:
		return nil, terminal.WithBad(fmt.Errorf("%s: %q: not found among the %s that answered; %s did not answer",
			argument, name, terminal.Count(len(ends), "end port"), terminal.Count(silent, "place")))
	}
	return nil, terminal.WithMisuse(fmt.Errorf("%s: %w", argument, err))
}
