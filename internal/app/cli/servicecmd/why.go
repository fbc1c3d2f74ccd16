package servicecmd

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api/client"
	"github.com/ibwarden/ibwarden/internal/api/views"
)

// Why asks the service why two end ports can or cannot talk.
func (n *Named) Why(c *cobra.Command, from, to string, sl uint8) (a views.Answer, err error) {
	at, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return a, err
	}
	a, _, err = client.Get[views.Answer](c.Context(), at, "/why", url.Values{"from": {from}, "to": {to}, "sl": {strconv.Itoa(int(sl))}})
	return a, failed(err)
}

// Peers asks the service whom an end port can talk with.
func (n *Named) Peers(c *cobra.Command, port string, sl uint8) ([]views.Peer, error) {
	at, err := n.flags.open(c.Context(), c.ErrOrStderr())
	if err != nil {
		return nil, err
	}
	peers, err := client.All[views.Peer](c.Context(), at, "/peers", url.Values{"port": {port}, "sl": {strconv.Itoa(int(sl))}})
	return peers, failed(err)
}
