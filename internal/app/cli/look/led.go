// This file implements `ibwarden device led`: the locating light of a device, on and off, and what it does.

package look

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/link"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// LedCommand returns the command. Add adds the flags that name a fabric, and returns what opens it; a
// word that is no command of it goes to wrong; help says how a fabric is named.
func LedCommand(add func(*pflag.FlagSet) func(*cobra.Command) (link.Link, sweep.Options, error), wrong cobra.PositionalArgs, help string) *cobra.Command {
	led := &cobra.Command{
		Use:   "led on|off|show DEVICE",
		Short: "Switch the locating light of a device on or off, to find a cable",
		Long: `Switch the locating light of a device on or off, to find a cable, or say what it does.

DEVICE is a host or a switch, by its node description or the first word of it, a GUID
or a LID (HOST:PORT where a host has several ports). SWITCH:PORT is the device at the
other end of the cable of that port; SWITCH and SWITCH:0 are the switch itself. LEDInfo
is set, and nothing else is written; devices with an M_Key take it with the keys in the
data directory (--data) only. Not every device has a light.

` + help,
		Args: wrong,
		RunE: func(*cobra.Command, []string) error {
			return terminal.WithMisuse(errors.New("led: want on, off or show, then a device: ibwarden device led on leaf-1:5"))
		},
	}
	open := add(led.PersistentFlags())
	for _, on := range []bool{true, false} {
		word := map[bool]string{true: "on", false: "off"}[on]
		led.AddCommand(&cobra.Command{
			Use: word + " DEVICE", Short: "Switch the light " + word, Args: cobra.ExactArgs(1),
			RunE: func(c *cobra.Command, args []string) error { return light(c, open, args[0], &on) },
		})
	}
	led.AddCommand(&cobra.Command{
		Use: "show DEVICE", Short: "Say whether the light is on", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return light(c, open, args[0], nil) },
	})
	return led
}

// light finds a device and switches its light, or says what it does where on is nil.
func light(c *cobra.Command, open func(*cobra.Command) (link.Link, sweep.Options, error), place string, on *bool) error {
	to, reads, err := open(c)
	if err != nil {
		return err
	}
	defer to.Close()
	r, err := Live(c, to, reads)
	if err != nil {
		return err
	}
	t, err := lit(r.Fabric, place)
	if err != nil {
		return terminal.WithBad(err)
	}
	shines := false
	if on == nil {
		shines, err = does(c, to, r.Fabric, t)
	} else {
		shines, err = *on, daemon.Light(c.Context(), to, t.Port, *on)
	}
	if err != nil {
		return terminal.WithBad(err)
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "the light of %s is %s\n", terminal.Plain(t.Port.Agent()), map[bool]string{true: "on", false: "off"}[shines])
	return err
}

// does asks a device whether its light is on.
func does(c *cobra.Command, to link.Link, f *observed.Fabric, t AttributeTarget) (bool, error) {
	if a := t.Port.Agent(); a.InfoRead && !a.Info.CapabilityMask.Has(smp.CapLEDInfo) {
		return false, fmt.Errorf("%s: %w", t.Port, daemon.ErrNoLight)
	}
	k, err := FindAttribute("LEDInfo")
	if err != nil {
		return false, err
	}
	r, err := ReadAttribute(c.Context(), to, f, t, k, AttributePart{})
	if err != nil {
		return false, err
	}
	var l smp.LEDInfo
	err = l.UnmarshalBinary(r.Answers[0].Data)
	return l.LEDMask, err
}

// lit is the device whose light a place means, by the port that answers for it.
func lit(f *observed.Fabric, place string) (t AttributeTarget, err error) {
	if t, err = Locate(f, place); err != nil {
		return t, err
	}
	p := t.Port
	switch {
	case p != nil && p.Node.Switch != nil && p.Num != 0:
		if p.Peer == nil {
			return t, fmt.Errorf("no device was found at the other end of the cable of %s", p)
		}
		p = p.Peer.Agent()
	case p == nil && t.Node.Switch != nil:
		p = &t.Node.Ports[0]
	case p == nil:
		for i := len(t.Node.Ports) - 1; i > 0; i-- {
			if t.Node.Ports[i].Reached {
				p = &t.Node.Ports[i]
			}
		}
	}
	if p == nil {
		return t, fmt.Errorf("no port of %s was reached", t)
	}
	return AttributeTarget{Node: p.Node, Port: p}, nil
}
