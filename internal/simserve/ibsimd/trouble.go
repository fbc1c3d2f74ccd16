package ibsimd

import (
	"errors"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
)

// cabled takes a port that can have a cable.
func (c *Console) cabled(w *words) (ib.NodeGUID, ib.PortNum, error) {
	n, port, err := w.where(c.server.topology)
	switch {
	case err != nil:
		return 0, 0, err
	case port < 1:
		return 0, 0, errors.New("want a port from 1 up")
	}
	return n.GUID, ib.PortNum(port), nil
}

// onOff takes the word on or off.
func (w *words) onOff() (bool, error) {
	switch word := w.word(); word {
	case "on":
		return true, nil
	case "off":
		return false, nil
	default:
		return false, fmt.Errorf("%q: want on or off", word)
	}
}

// noise lets the link change bits of what leaves by a port.
func (c *Console) noise(w *words) error {
	g, port, err := c.cabled(w)
	if err != nil {
		return err
	}
	percent, err := w.number("percent", 100)
	if err != nil {
		return err
	}
	return c.server.fabric.SetLinkFault(g, port, fabric.LinkFault{Flips: float64(percent) / 100})
}

// reckless lets a port send without asking for credits.
func (c *Console) reckless(w *words) error { return c.switched(w, c.server.fabric.SetReckless) }

// withhold lets a port give no credits.
func (c *Console) withhold(w *words) error { return c.switched(w, c.server.fabric.Withhold) }

func (c *Console) switched(w *words, set func(ib.NodeGUID, ib.PortNum, bool) error) error {
	g, port, err := c.cabled(w)
	if err != nil {
		return err
	}
	on, err := w.onOff()
	if err != nil {
		return err
	}
	return set(g, port, on)
}
