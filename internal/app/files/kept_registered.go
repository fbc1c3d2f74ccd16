// kept*.go: is what a subnet manager keeps from run to run and hands on to the next: LIDs,
// allocated P_Keys, fences, which port has which generation of its M_Key, and what hosts
// registered. It reads and writes it as a file, and as objects of a store that managers
// share. What it reads is input: a value that is damaged is refused by name.

package files

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/observed/group"
	"github.com/ibwarden/ibwarden/internal/sa/server"
)

// Registered is what hosts registered with subnet administration, as it is kept
// from run to run.
type Registered struct {
	server.State
	// SAKey is the key that trusted subscribers came with.
	SAKey ib.SMKey
	// Manager is the port of the manager with which they registered; 0 where that was
	// not written down.
	Manager ib.PortGUID
}

// administrationFile is Registered in the state file. Records are in hex, as on
// the wire. Of the SA_Key only a salted sum is kept, which reports whether it is
// the same still.
type administrationFile struct {
	Saved         time.Time              `json:"saved"`
	Salt          string                 `json:"salt"`
	KeySum        string                 `json:"sa_key_sum"`
	Manager       string                 `json:"manager,omitempty"`
	Groups        []groupEntry           `json:"groups"`
	Retired       map[string]ib.PKeyBase `json:"retired_mlids"`
	Serial        uint64                 `json:"groups_made"`
	Services      []serviceEntry         `json:"services"`
	Subscriptions []subscriptionEntry    `json:"subscriptions"`
	AliasGUIDs    map[string][]string    `json:"alias_guids"`
}

type groupEntry struct {
	MGID      string        `json:"mgid"`
	MLID      ib.LID        `json:"mlid"`
	Partition ib.PKeyBase   `json:"partition"`
	QKey      uint32        `json:"q_key"`
	MTU       uint8         `json:"mtu"`
	Rate      uint8         `json:"rate"`
	Lifetime  uint8         `json:"packet_lifetime"`
	SL        uint8         `json:"sl"`
	TClass    uint8         `json:"tclass"`
	FlowLabel uint32        `json:"flow_label"`
	HopLimit  uint8         `json:"hop_limit"`
	Fixed     bool          `json:"fixed"`
	Members   []memberEntry `json:"members"`
}

type memberEntry struct {
	Port  string `json:"port"`
	GID   string `json:"gid"`
	State uint8  `json:"join_state"`
	Proxy bool   `json:"proxy"`
}

type serviceEntry struct {
	Port   string        `json:"port"`
	Record string        `json:"record"`
	Left   time.Duration `json:"left_ns"`
}

type subscriptionEntry struct {
	Port    string `json:"port"`
	LID     ib.LID `json:"lid"`
	QP      uint32 `json:"qp"`
	SL      uint8  `json:"sl"`
	PKey    uint16 `json:"p_key"`
	GID     string `json:"gid,omitempty"`
	Inform  string `json:"inform"`
	Trusted bool   `json:"trusted"`
	Enum    uint16 `json:"enum"`
}

// saltSize is that of administrationFile.Salt, in bytes.
const saltSize = 16

func keySum(salt []byte, key ib.SMKey) string {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(slices.Clone(salt), uint64(key)))
	return hex.EncodeToString(sum[:])
}

func (r *Registered) encode() (*administrationFile, error) {
	salt := make([]byte, saltSize)
	rand.Read(salt) // never fails
	out := &administrationFile{
		Saved: time.Now().UTC(), Salt: hex.EncodeToString(salt), KeySum: keySum(salt, r.SAKey),
		Groups: []groupEntry{}, Services: []serviceEntry{}, Subscriptions: []subscriptionEntry{},
		Retired: map[string]ib.PKeyBase{}, Serial: r.Groups.Serial, AliasGUIDs: map[string][]string{},
	}
	if r.Manager != 0 {
		out.Manager = r.Manager.String()
	}
	for i := range r.Groups.Groups {
		out.Groups = append(out.Groups, encodeGroup(&r.Groups.Groups[i]))
	}
	for _, x := range r.Groups.Retired {
		out.Retired[fmt.Sprintf("%#04x", uint16(x.MLID))] = x.Partition
	}
	for i := range r.Services {
		x := &r.Services[i]
		b, err := x.Record.AppendBinary(nil)
		if err != nil {
			return nil, fmt.Errorf("service %#x of port %s: %w", x.Record.ServiceID, x.Port, err)
		}
		out.Services = append(out.Services, serviceEntry{x.Port.String(), hex.EncodeToString(b), x.Left})
	}
	for i := range r.Subscriptions {
		x := &r.Subscriptions[i]
		b, err := x.Inform.AppendBinary(nil)
		if err != nil {
			return nil, fmt.Errorf("subscription %d of port %s: %w", x.Enum, x.Port, err)
		}
		e := subscriptionEntry{
			Port: x.Port.String(), LID: x.Address.LID, QP: uint32(x.Address.QP), SL: uint8(x.Address.SL), PKey: uint16(x.Address.PKey),
			Inform: hex.EncodeToString(b), Trusted: x.Trusted, Enum: x.Enum,
		}
		if x.Address.GID != (ib.GID{}) {
			e.GID = x.Address.GID.String()
		}
		out.Subscriptions = append(out.Subscriptions, e)
	}
	for port, list := range r.Aliases {
		for _, g := range list {
			out.AliasGUIDs[port.String()] = append(out.AliasGUIDs[port.String()], g.String())
		}
	}
	return out, nil
}

func encodeGroup(g *group.Group) groupEntry {
	e := groupEntry{
		MGID: g.MGID.String(), MLID: g.MLID, Partition: g.Partition, QKey: uint32(g.QKey), MTU: uint8(g.MTU), Rate: uint8(g.Rate),
		Lifetime: uint8(g.Lifetime), SL: uint8(g.SL), TClass: g.TClass, FlowLabel: g.FlowLabel, HopLimit: g.HopLimit,
		Fixed: g.Fixed, Members: []memberEntry{},
	}
	for _, m := range g.Members {
		e.Members = append(e.Members, memberEntry{m.Port.String(), m.GID.String(), uint8(m.State), m.Proxy})
	}
	return e
}

// LoadRegistered reads what hosts registered; some is false when the file does
// not exist, or no run has answered hosts. Leases have gone on meanwhile. Who
// was trusted by another SA_Key is no subscriber any more.
func LoadRegistered(path string, saKey ib.SMKey) (r Registered, some bool, err error) {
	s, err := readState(path)
	if err != nil || s.Administration == nil {
		return Registered{}, false, err
	}
	if r, err = s.Administration.decode(saKey); err != nil {
		return Registered{}, false, fmt.Errorf("state %s: administration: %w", path, err)
	}
	return r, true, nil
}

func (f *administrationFile) decode(saKey ib.SMKey) (r Registered, err error) {
	r.SAKey = saKey
	r.Groups.Serial = f.Serial
	if f.Manager != "" {
		if r.Manager, err = ib.ParsePortGUID(f.Manager); err != nil {
			return r, fmt.Errorf("manager: %w", err)
		}
	}
	for i := range f.Groups {
		g, err := f.Groups[i].decode()
		if err != nil {
			return r, fmt.Errorf("groups[%d]: %w", i, err)
		}
		r.Groups.Groups = append(r.Groups.Groups, g)
	}
	for text, base := range f.Retired {
		lid, err := ib.ParseLID(text)
		if err != nil || !lid.IsMulticast() || !base.IsValid() {
			return r, fmt.Errorf("retired_mlids: %q of partition %s: want a multicast LID and a partition", text, base)
		}
		r.Groups.Retired = append(r.Groups.Retired, group.Retired{MLID: lid, Partition: base})
	}
	slices.SortFunc(r.Groups.Retired, func(a, b group.Retired) int { return int(a.MLID) - int(b.MLID) })
	gone := max(time.Since(f.Saved), 0)
	for i, e := range f.Services {
		x := server.Service{Left: e.Left - gone}
		if x.Port, err = ib.ParsePortGUID(e.Port); err == nil {
			err = unhex(e.Record, sa.ServiceRecordSize, &x.Record)
		}
		if err != nil {
			return r, fmt.Errorf("services[%d]: %w", i, err)
		}
		if x.Left > 0 || x.Record.ServiceLease == sa.ServiceLeaseForever {
			r.Services = append(r.Services, x)
		}
	}
	salt, err := hex.DecodeString(f.Salt)
	if err != nil {
		return r, fmt.Errorf("salt: %w", err)
	}
	trusts := saKey != 0 && keySum(salt, saKey) == f.KeySum
	for i, e := range f.Subscriptions {
		x, err := e.decode()
		if err != nil {
			return r, fmt.Errorf("subscriptions[%d]: %w", i, err)
		}
		if trusts || !x.Trusted {
			r.Subscriptions = append(r.Subscriptions, x)
		}
	}
	return r, f.decodeAliases(&r)
}

func (f *administrationFile) decodeAliases(r *Registered) error {
	r.Aliases = make(map[ib.PortGUID][]ib.PortGUID, len(f.AliasGUIDs))
	for text, list := range f.AliasGUIDs {
		port, err := ib.ParsePortGUID(text)
		if err != nil {
			return fmt.Errorf("alias_guids: %w", err)
		}
		for _, alias := range list {
			g, err := ib.ParsePortGUID(alias)
			if err != nil {
				return fmt.Errorf("alias_guids of port %s: %w", text, err)
			}
			r.Aliases[port] = append(r.Aliases[port], g)
		}
	}
	return nil
}

func (e *groupEntry) decode() (g group.Group, err error) {
	g = group.Group{
		MLID: e.MLID, Partition: e.Partition, Fixed: e.Fixed,
		Settings: group.Settings{
			QKey: ib.QKey(e.QKey), MTU: ib.MTU(e.MTU), Rate: ib.Rate(e.Rate), Lifetime: ib.TimeValue(e.Lifetime), SL: ib.SL(e.SL),
			TClass: e.TClass, FlowLabel: e.FlowLabel, HopLimit: e.HopLimit,
		},
	}
	if g.MGID, err = ib.ParseGID(e.MGID); err != nil {
		return g, err
	}
	if !g.MTU.IsValid() || g.SL > 15 || g.FlowLabel >= 1<<20 {
		return g, fmt.Errorf("group %s: MTU %d, SL %d, flow label %#x: out of range", e.MGID, e.MTU, e.SL, e.FlowLabel)
	}
	for _, m := range e.Members {
		x := group.Member{State: sa.JoinState(m.State), Proxy: m.Proxy}
		if x.Port, err = ib.ParsePortGUID(m.Port); err == nil {
			x.GID, err = ib.ParseGID(m.GID)
		}
		if err != nil {
			return g, fmt.Errorf("group %s: %w", e.MGID, err)
		}
		g.Members = append(g.Members, x)
	}
	return g, nil
}

func (e *subscriptionEntry) decode() (x server.Subscription, err error) {
	x = server.Subscription{
		Address: mad.Address{LID: e.LID, QP: ib.QPN(e.QP), SL: ib.SL(e.SL), PKey: ib.PKey(e.PKey)},
		Trusted: e.Trusted, Enum: e.Enum,
	}
	if x.Port, err = ib.ParsePortGUID(e.Port); err != nil {
		return x, err
	}
	if e.GID != "" {
		if x.Address.GID, err = ib.ParseGID(e.GID); err != nil {
			return x, err
		}
	}
	if !x.Address.LID.IsUnicast() {
		return x, fmt.Errorf("LID %d of port %s: want a unicast LID", e.LID, e.Port)
	}
	return x, unhex(e.Inform, sa.InformInfoSize, &x.Inform)
}

// unhex reads a record as on the wire: filled up to whole 8 bytes.
func unhex(text string, size int, to sa.Record) error {
	b, err := hex.DecodeString(text)
	if want := (size + 7) / 8 * 8; err == nil && len(b) != want {
		err = fmt.Errorf("%d bytes, want %d", len(b), want)
	}
	if err == nil {
		err = to.UnmarshalBinary(b)
	}
	return err
}
