package servicecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
)

// Places are the sockets of services on this machine that nobody named, the likeliest
// first. data is the data directory that the command line names, "" for none.
func Places(data string) []string {
	if data == "" {
		if dir, err := daemon.DefaultDataDir(""); err == nil { // that of the environment
			data = string(dir)
		}
	}
	if data != "" {
		return []string{listen.SocketIn(data)} // the service is there or nowhere
	}
	var list []string
	if dir, err := daemon.DefaultDataDir("umad"); err == nil {
		list = append(list, listen.SocketIn(string(dir)))
	}
	list = append(list, listen.SocketIn(""))
	if list[len(list)-1] != listen.SystemSocket {
		list = append(list, listen.SystemSocket)
	}
	return list
}

// running finds a service that runs at one of these places, answers as ibwarden, and
// takes the caller. Another user of this machine who serves a socket there is not believed
// (client.Options.OwnOnly): that, and whatever else is there and is not asked, is said
// to w. A service that is there and does not answer is an error.
func (f *serverFlags) running(ctx context.Context, w io.Writer, places []string) (s listen.Server, some bool, err error) {
	for _, path := range places {
		if _, err := os.Lstat(path); err != nil {
			continue // nothing is there, or it is in a directory of another's
		}
		s = listen.Server{Socket: path}
		why := ""
		if err := client.Trusted(path); err != nil {
			why = err.Error()
		} else if why, err = f.probe(ctx, s); err != nil {
			return s, false, err
		}
		switch why {
		case "":
			return s, true, nil
		case nobody:
		default:
			fmt.Fprintf(w, "ibwarden: %s is not asked: %s\n", s, terminal.Plain(why))
		}
	}
	return listen.Server{}, false, nil
}

// nobody is why a socket is not asked that a process left behind which is gone.
const nobody = "nobody serves it"

// probe returns why a service is not asked, "" for one that is.
func (f *serverFlags) probe(ctx context.Context, s listen.Server) (why string, err error) {
	o, err := f.options()
	if err != nil {
		return "", err
	}
	o.OwnOnly = true
	c, err := client.New(s, o)
	if err != nil {
		return "", terminal.WithMisuse(err)
	}
	status, err := c.Probe(ctx)
	switch {
	case errors.Is(err, client.ErrNone), errors.Is(err, fs.ErrPermission):
		return nobody, nil
	case errors.Is(err, client.ErrForeign), errors.Is(err, client.ErrStranger):
		return err.Error(), nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", terminal.WithBad(fmt.Errorf("%w; --server %s does without the service", err, listen.NoSocket))
	case status == http.StatusUnauthorized && o.Token == "":
		return "it wants a token of you (--token-file or " + tokenVariable + ")", nil
	}
	return "", nil
}

// Choose decides whether a command asks a service or goes to a fabric, and tells on
// standard error of a service that no flag names. A service is asked that a flag names;
// else none, where a flag names a fabric or how to read one; else the one that the
// environment names; else none, where that names a fabric (fabricVariable); else one that
// runs on this machine.
func (n *Named) Choose(c *cobra.Command, fabricVariable string) (asks bool, err error) {
	data := ""
	for _, name := range []string{"fabric", "guid", "m-key-file", "secret-file", "data"} {
		switch flag := c.Flags().Lookup(name); {
		case flag == nil || !flag.Changed:
		case name == "data":
			data = flag.Value.String()
		case n.flags.server != "" && n.flags.server != listen.NoSocket:
			return false, terminal.WithMisuse(fmt.Errorf("--server and --%s: want one or the other", name))
		default:
			return false, nil
		}
	}
	named := os.Getenv(listen.ServerVariable)
	switch {
	case n.flags.server != "":
		return n.flags.server != listen.NoSocket, nil
	case named == listen.NoSocket:
		return false, nil
	case named != "":
		fmt.Fprintf(c.ErrOrStderr(), "ibwarden: asking the service at %s\n", terminal.Plain(named))
		return true, nil
	case os.Getenv(fabricVariable) != "":
		return false, nil
	}
	found, some, err := n.flags.running(c.Context(), c.ErrOrStderr(), Places(data))
	if some {
		n.flags.found = &found
		fmt.Fprintf(c.ErrOrStderr(), "ibwarden: asking the service at %s, which runs on this machine\n", terminal.Plain(found.String()))
	}
	return some, err
}

// Cables is the list of cables that a service holds to whose data directory Choose found;
// nil where it has none, or a service was named.
func (n *Named) Cables() (*cables.List, error) {
	if n.flags.found == nil {
		return nil, nil
	}
	list, err := daemon.DataDir(filepath.Dir(n.flags.found.Socket)).LoadCables()
	if errors.Is(err, fs.ErrPermission) {
		return nil, nil // the service is another user's
	}
	return list, err
}

// errNoService is that of a command that has to ask a service, where none is named and none runs.
var errNoService = errors.New("no service runs on this machine")

// find is where the service is: as named, or one that runs on this machine.
func (f *serverFlags) find(ctx context.Context, w io.Writer) (s listen.Server, named bool, err error) {
	if f.found != nil {
		return *f.found, false, nil
	}
	text := f.server
	if text == "" {
		text = os.Getenv(listen.ServerVariable)
	}
	if text == listen.NoSocket {
		return s, false, terminal.WithMisuse(fmt.Errorf("%s: this command has to ask a service", text))
	}
	if text != "" {
		if s, err = listen.ParseServer(text); err != nil {
			return s, true, terminal.WithMisuse(err)
		}
		return s, true, nil
	}
	list := Places("")
	s, some, err := f.running(ctx, w, list)
	if err == nil && !some {
		err = terminal.WithMisuse(fmt.Errorf("%w (none is asked at %s): start one with ibwarden run, or name one with --server or %s", errNoService, strings.Join(list, ", "), listen.ServerVariable))
	}
	return s, false, err
}
