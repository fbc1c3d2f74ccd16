package look

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/observed"
)

// toGroup reports whether the packet is for a multicast LID.
func (f *traceFlags) toGroup() bool {
	mlid, err := ib.ParseLID(f.to)
	return err == nil && mlid.IsMulticast()
}

// groupReport is what trace prints of a packet for a multicast LID.
type groupReport struct {
	From     ib.PortGUID    `json:"from"`
	FromName string         `json:"from_name"`
	DLID     ib.LID         `json:"dlid"`
	Copies   []reach.Trace  `json:"copies"`
	Source   string         `json:"source"`
	ReadAt   string         `json:"read_at"`
	Faults   []ReadingFault `json:"faults"`
	SMPs     *daemon.SMPs   `json:"smps"`
}

// group follows the copies of a packet for a multicast LID.
func (f *traceFlags) group(c *cobra.Command, r *Reading, from *observed.Port, mlid ib.LID) error {
	switch {
	case f.send:
		return terminal.WithMisuse(errors.New("--packet: not of a packet for a multicast LID"))
	case f.packet.Service != reach.UD:
		return terminal.WithMisuse(fmt.Errorf("--service %s: want UD for a multicast LID", f.packet.Service))
	case f.packet.QKey != nil:
		return terminal.WithMisuse(errors.New("--qkey: the groups of a host cannot be read over the wire"))
	}
	if f.anyPKey {
		f.packet.PKey = UsualKey(from, from)
		if i := slices.IndexFunc(from.PKeys, func(k ib.PKey) bool { return k.IsValid() && k.Base() != ib.PKeyBaseDefault }); i >= 0 {
			f.packet.PKey = from.PKeys[i]
		}
	}
	copies := reach.FollowGroup(from, mlid, f.packet)
	delivered, unknown := 0, false
	age := time.Since(r.ReadAt)
	for i := range copies {
		if f.maxAge > 0 && age > f.maxAge {
			copies[i].Outdate(age, f.maxAge)
		}
		if copies[i].Disposition == reach.Delivered {
			delivered++
		}
		unknown = unknown || copies[i].Disposition == reach.Unknown
	}
	if f.json {
		d := groupReport{From: from.GUID, FromName: from.String(), DLID: mlid, Copies: copies, Source: r.Source,
			ReadAt: r.Time(), Faults: r.Unread(), SMPs: r.SMPs}
		if err := terminal.JSON(c.OutOrStdout(), d); err != nil {
			return terminal.WithBad(err)
		}
	} else {
		fmt.Fprintf(c.OutOrStdout(), "%s to multicast LID 0x%04x, P_Key %s, SL %d\n\n", terminal.Plain(from), uint16(mlid), f.packet.PKey, f.packet.SL)
		if err := terminal.PrintCopies(c.OutOrStdout(), copies); err != nil {
			return terminal.WithBad(err)
		}
	}
	if delivered == 0 || unknown {
		return terminal.WithBad(errNotDelivered)
	}
	return nil
}
