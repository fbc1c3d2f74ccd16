// trace*.go: implements `ibwarden trace`: one packet through the tables that devices
// hold.

package look

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/judge/reach"
	"github.com/ibwarden/ibwarden/internal/lab/compare"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// traceFlags are the traceFlags of `ibwarden trace`.
type traceFlags struct {
	source        ReadingSource
	pkey, service string
	qkey          string
	sl            uint8
	json, send    bool
	maxAge        time.Duration

	packet   reach.Packet
	anyPKey  bool
	from, to string
}

// TraceReport is what `ibwarden trace --json` prints.
type TraceReport struct {
	reach.Trace
	FromName string         `json:"from_name"`
	ToName   string         `json:"to_name"`
	Source   string         `json:"source"`
	ReadAt   string         `json:"read_at"`
	Faults   []ReadingFault `json:"faults"`
	SMPs     *daemon.SMPs   `json:"smps"`
	// Packet is the result of a real one; null without --packet.
	Packet *compare.Report `json:"packet"`
}

// TraceCommand is `ibwarden trace`.
func TraceCommand(from ReadingSource) *cobra.Command {
	f := traceFlags{source: from}
	c := &cobra.Command{
		Use:   "trace FROM TO",
		Short: "Trace one packet through the tables that devices hold",
		Long: `Trace one packet through the tables that devices hold: each port on its path,
the virtual lane, the checks, the entry that decided, and the outcome. Only
SubnGet is sent.

FROM and TO are end ports: a port GUID, a LID, a node description, or
DESCRIPTION:PORT. Without --pkey the packet has the first key of FROM that TO
takes, or else the first that FROM has.

TO may be a multicast LID: then every copy is traced to where it ends. Without
--pkey it has the first key of FROM beyond the default partition.

With --packet a simulated fabric is built from what was read, the packet is
really sent through it, and the outcome is compared with the trace, hop by hop.

` + from.Help,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			f.from, f.to = args[0], args[1]
			return f.run(c)
		},
	}
	from.Add(c)
	flags := c.Flags()
	flags.StringVar(&f.pkey, "pkey", "", "P_Key of the packet, 16 bits; 0x8000 is the membership bit")
	flags.StringVar(&f.service, "service", "UD", "UD, RC, UC, RD or raw")
	flags.Uint8Var(&f.sl, "sl", 0, "service level, 0 to 15")
	flags.StringVar(&f.qkey, "qkey", "", "Q_Key of the packet, 32 bits; UD and RD only")
	flags.DurationVar(&f.maxAge, "max-age", 0, "anything read longer ago counts as unknown (default: any age)")
	flags.BoolVar(&f.send, "packet", false, "send the packet through a simulated fabric made of what was read, and compare")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return c
}

func (f *traceFlags) load() (err error) {
	if f.packet.Service, err = reach.ParseService(f.service); err != nil {
		return terminal.WithMisuse(fmt.Errorf("--service: %w", err))
	}
	if f.maxAge < 0 {
		return terminal.WithMisuse(fmt.Errorf("--max-age %v: want a time that is not negative", f.maxAge))
	}
	if f.sl >= smp.SLCount {
		return terminal.WithMisuse(fmt.Errorf("--sl %d: want 0 to %d", f.sl, smp.SLCount-1))
	}
	f.packet.SL = ib.SL(f.sl)
	f.anyPKey = f.pkey == "" && f.packet.Service != reach.Raw
	if f.pkey != "" {
		k, err := strconv.ParseUint(f.pkey, 0, 16)
		switch {
		case f.packet.Service == reach.Raw:
			return terminal.WithMisuse(errors.New("--pkey: a raw packet has none"))
		case err != nil || !ib.PKey(k).IsValid():
			return terminal.WithMisuse(fmt.Errorf("--pkey %q: want 16 bits, the low 15 of them not all zero", f.pkey))
		}
		f.packet.PKey = ib.PKey(k)
	}
	if f.qkey != "" {
		q, err := strconv.ParseUint(f.qkey, 0, 32)
		switch {
		case f.packet.Service != reach.UD && f.packet.Service != reach.RD:
			return terminal.WithMisuse(fmt.Errorf("--qkey: a packet of service %s has none", f.packet.Service))
		case err != nil:
			return terminal.WithMisuse(fmt.Errorf("--qkey %q: want 32 bits", f.qkey))
		}
		key := ib.QKey(q)
		f.packet.QKey = &key
	}
	return nil
}

// What ends a trace of a packet that does not get through, and one of which a
// packet does not go the way that was computed.
var (
	errNotDelivered = errors.New("the packet is not delivered")
	errOtherwise    = errors.New("the packet that was sent does not agree with the trace")
)

func (f *traceFlags) run(c *cobra.Command) error {
	if err := f.load(); err != nil {
		return err
	}
	r, err := f.source.Read(c, sweep.Options{Forwarding: true, QoS: true, Multicast: f.toGroup()})
	if err != nil {
		return err
	}
	from, err := EndPort(r.Fabric, "FROM", f.from)
	if err != nil {
		return err
	}
	if mlid, err := ib.ParseLID(f.to); err == nil && mlid.IsMulticast() {
		return f.group(c, r, from, mlid)
	}
	to, err := EndPort(r.Fabric, "TO", f.to)
	if err != nil {
		return err
	}
	if from == to {
		return terminal.WithMisuse(fmt.Errorf("FROM and TO are both %s: want two ports", from))
	}
	if f.anyPKey {
		f.packet.PKey = UsualKey(from, to)
	}
	t := reach.Follow(from, to, f.packet)
	var sent *compare.Report
	if f.send {
		err := terminal.During(c.ErrOrStderr(), "making a fabric of what was read", func() (err error) {
			sent, err = compare.Try(r.Fabric, from, to, f.packet, &t)
			return err
		})
		if err != nil {
			return terminal.WithBad(err)
		}
	}
	if age := time.Since(r.ReadAt); f.maxAge > 0 && age > f.maxAge {
		t.Outdate(age, f.maxAge)
	}
	if f.json {
		d := TraceReport{Trace: t, FromName: from.String(), ToName: to.String(), Source: r.Source,
			ReadAt: r.Time(), Faults: r.Unread(), SMPs: r.SMPs, Packet: sent}
		if err := terminal.JSON(c.OutOrStdout(), d); err != nil {
			return terminal.WithBad(err)
		}
	} else if err := PrintTrace(c.OutOrStdout(), t, from, to, sent); err != nil {
		return terminal.WithBad(err)
	}
	if sent != nil && !sent.Agrees {
		return terminal.WithBad(errOtherwise)
	}
	if t.Disposition != reach.Delivered {
		return terminal.WithBad(errNotDelivered)
	}
	return nil
}
