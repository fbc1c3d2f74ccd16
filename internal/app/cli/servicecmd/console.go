package servicecmd

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
)

// consolePath is where the service has its console.
const consolePath = "/console/"

// Console is `ibwarden show console`.
func console() *cobra.Command {
	c := printer("console", "Print an address that opens the console of the service in a browser", cobra.NoArgs, func(c *cobra.Command, to *client.Client, _ []string) error {
		var login listen.Login
		if err := to.Write(c.Context(), http.MethodPost, "/logins", client.Params{}, nil, &login); err != nil {
			return err
		}
		if strings.HasPrefix(to.Server(), "http") { // it is reached there already
			login.Address = to.Server()
		}
		if login.Address == "" {
			return terminal.WithBad(errors.New("the service listens on no TCP address, and a browser opens no Unix socket: start it with --listen 127.0.0.1:8443 too"))
		}
		// By itself on standard output, for what opens it.
		fmt.Fprintf(c.OutOrStdout(), "%s%s#code=%s\n", terminal.Plain(login.Address), consolePath, terminal.Plain(login.Code))
		fmt.Fprintf(c.ErrOrStderr(), "Open it in a browser within %v: it logs in once, and everybody who has it can.\n", listen.CodeLife)
		return nil
	})
	c.Long = fmt.Sprintf(`Print an address that opens the console of the service in a browser.

The address has a one-time code, with which the browser logs in as you: as root or the owner
of the service over its Unix socket, else as the token or the client certificate that you give. The code
is valid for %v and for one login. The session ends after %d h, %d min after the last thing that you
did, or with the token.

The service has to listen on a TCP address (ibwarden run --listen 127.0.0.1:8443). For
one on another machine without TLS use a tunnel: ssh -L 8443:127.0.0.1:8443 HOST.
`, listen.CodeLife, int(listen.SessionLife/time.Hour), int(listen.Idle/time.Minute))
	return c
}
