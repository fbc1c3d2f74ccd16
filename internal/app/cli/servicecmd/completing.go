package servicecmd

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
)

// Completing is a client of the service that a command line names so far, or of the one
// that runs on this machine, for a shell that completes words; nil for none. It prints
// nothing. Nobody has asked for the request yet, so it goes to fewer services than that
// of a command: of sockets, named ones too, only to those that root or the caller serves,
// at a place that nobody else can write; of URLs, only to https, where a certificate says
// who answers.
func Completing(ctx context.Context, c *cobra.Command) *client.Client {
	f := &serverFlags{}
	for name, to := range map[string]*string{"server": &f.server, "token-file": &f.tokenFile, "cacert": &f.ca, "cert": &f.certificate, "key": &f.key} {
		flag := c.Flags().Lookup(name)
		if flag == nil {
			return nil // the command asks no service
		}
		*to = flag.Value.String()
	}
	s, _, err := f.find(ctx, io.Discard)
	if err != nil || s.Socket == "" && !strings.HasPrefix(s.URL, "https://") {
		return nil
	}
	o, err := f.options()
	if err != nil {
		return nil
	}
	o.OwnOnly, o.Old = true, nil
	to, err := client.New(s, o)
	if err != nil {
		return nil
	}
	return to
}
