// Package ledcmd implements `ibwarden led`: the locating light of a device, on and off.
package ledcmd

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/internal/app/cli/exit"
	"github.com/ibwarden/ibwarden/internal/app/cli/progress"
	"github.com/ibwarden/ibwarden/internal/app/cli/reading"
	"github.com/ibwarden/ibwarden/internal/app/cli/table"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// New returns the command. Add adds the flags that name a fabric, and returns what opens it; a
// word that is no command of it goes to wrong; help says how a fabric is named.
func New(add func(*pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error), wrong cobra.PositionalArgs, help string) *cobra.Command {
	led := &cobra.Command{
		Use:   "led on|off SWITCH:PORT",
		Short: "Switch the locating light of a device on or off, to find a cable",
		Long: `Switch the locating light of a device on or off, to find a cable.

SWITCH:PORT is a port of a switch, by the name or node GUID of the switch: the light
is that of the device at the other end of its cable. SWITCH:0 is the switch itself.
LEDInfo is set, and nothing else is written; devices with an M_Key take it with the
keys in the data directory (--data) only. Not every device has a light.

` + help,
		Args: wrong,
		RunE: func(*cobra.Command, []string) error {
			return exit.WithMisuse(errors.New("led: want on or off, then a place: ibwarden led on leaf-1:5"))
		},
	}
	open := add(led.PersistentFlags())
	for _, on := range []bool{true, false} {
		word := map[bool]string{true: "on", false: "off"}[on]
		led.AddCommand(&cobra.Command{
			Use: word + " SWITCH:PORT", Short: "Switch the light " + word, Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error { return light(c, open, args[0], on) },
		})
	}
	return led
}

// light finds a device and switches its light.
func light(c *cobra.Command, open func(*cobra.Command) (link.Link, sweep.Options, error), place string, on bool) error {
	at, err := daemon.ParsePlace(place)
	if err != nil {
		return exit.WithMisuse(err)
	}
	to, reads, err := open(c)
	if err != nil {
		return err
	}
	defer to.Close()
	r, err := daemon.ReadShowing(c.Context(), to, reads, progress.Reading(c.ErrOrStderr()))
	if err != nil {
		return exit.WithBad(err)
	}
	reading.SayGuarded(c.ErrOrStderr(), r.Fabric, false)
	p, err := lit(r.Fabric, at)
	if err == nil {
		err = daemon.Light(c.Context(), to, p, on)
	}
	if err != nil {
		return exit.WithBad(err)
	}
	word := map[bool]string{true: "on", false: "off"}[on]
	_, err = fmt.Fprintf(c.OutOrStdout(), "the light of %s is %s\n", table.Plain(p.Agent()), word)
	return err
}

// lit is the port whose light a place means.
func lit(f *observed.Fabric, at policy.Place) (*observed.Port, error) {
	own := at.Port == 0
	if own {
		at.Port = 1 // any port of the switch finds it
	}
	p := facts.PortAt(f, at)
	switch {
	case p == nil:
		return nil, fmt.Errorf("no port %s: want SWITCH:PORT, with a name that one switch has, or its node GUID", at)
	case own:
		return &p.Node.Ports[0], nil
	case p.Peer == nil:
		return nil, fmt.Errorf("no device was found at the other end of the cable of %s", p)
	}
	return p.Peer, nil
}
