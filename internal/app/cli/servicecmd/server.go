package servicecmd

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/api/client"
)

// Server are the flags that choose a service, for commands of other packages.
type Server struct{ flags serverFlags }

// Add adds the flags.
func (s *Server) Add(flags *pflag.FlagSet) { s.flags.add(flags) }

// Find says whether a service is named, by the flag or the environment, and else whether
// one runs on this machine.
func (s *Server) Find(c *cobra.Command) (named, runs bool) {
	found, named, err := s.flags.find(c.Context(), c.ErrOrStderr())
	if err == nil && !named {
		s.flags.found = &found
	}
	return named, err == nil
}

// Open is a client of the service.
func (s *Server) Open(c *cobra.Command) (*client.Client, error) {
	return s.flags.open(c.Context(), c.ErrOrStderr())
}

// Failed gives an error of a call its exit status.
func (s *Server) Failed(err error) error { return failed(err) }
