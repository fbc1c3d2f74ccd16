package resource

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/policy"
)

// Provider is the name of the tenant that owns the fabric: it makes tenants, gives
// them ports and keys, and owns every port and key that no other tenant owns.
const Provider = "provider"

// Kind is a kind of object, and the first part of its key.
type Kind string

// The kinds of objects.
const (
	KindTenant    Kind = "tenant"
	KindToken     Kind = "token"
	KindPort      Kind = "port"
	KindPool      Kind = "pool"
	KindPartition Kind = "partition"
	KindMember    Kind = "member"
	KindRemoved   Kind = "removed"
	KindApproval  Kind = "approval"
	KindFile      Kind = "file"
	KindDrain     Kind = "drain"
	KindRestored  Kind = "restored"

	KindAcknowledgement Kind = "acknowledgement"
)

// Object is one object of a State. An Object is never changed: an edit replaces it.
type Object interface {
	// Key is the kind of the object, a slash, and what identifies it among its kind.
	Key() string
}

// Tenant is a customer of the fabric, or the provider.
type Tenant struct {
	// Name is 1 to 40 letters, digits, '-', '_' or '.'.
	Name string `json:"name"`
	// Keys are the numbers that its partitions may have. Those of two tenants do
	// not overlap; the provider's are all that no tenant has.
	Keys  KeyRange `json:"keys,omitzero"`
	Quota Quota    `json:"quota,omitzero"`
	// ApproveRemovals makes each change by a caller of the tenant that takes a key
	// from a port, or deletes a partition, wait until a second person approves it.
	ApproveRemovals bool `json:"approve_removals,omitempty"`
	// KnownPortsOnly refuses GUIDs of the tenant that the fabric has not seen.
	// Otherwise a port may be a member before it is there, as ib-kubernetes' are.
	KnownPortsOnly bool `json:"known_ports_only,omitempty"`
	// Labels are for the provider and the tenant itself. Nothing is decided by them.
	Labels LabelSet `json:"labels,omitempty"`
}

// KeyRange is the partition numbers from First to Last; none when First is 0.
type KeyRange struct {
	First ib.PKeyBase `json:"first,omitempty"`
	Last  ib.PKeyBase `json:"last,omitempty"`
}

// Has reports whether a number is in the range.
func (r KeyRange) Has(k ib.PKeyBase) bool { return r.First != 0 && r.First <= k && k <= r.Last }

// String prints the range as 0x0001-0x00ff.
func (r KeyRange) String() string {
	if r.First == 0 {
		return "none"
	}
	return fmt.Sprintf("%v-%v", r.First, r.Last)
}

// Quota bounds what a tenant may have; 0 is no bound but the limits of this package.
type Quota struct {
	Partitions int `json:"partitions,omitempty"`
	// Members are those of all partitions of the tenant together that it agreed to:
	// what others ask of it does not count.
	Members int `json:"members,omitempty"`
	// KeysPerPort bounds the partitions in which the tenant wants one port of its
	// own to be; that another tenant asks for the port does not count.
	KeysPerPort int `json:"keys_per_port,omitempty"`
	// ChangesPerMinute bounds the accepted changes of its callers in 60 s; for each
	// caller his refused ones count too.
	ChangesPerMinute int `json:"changes_per_minute,omitempty"`
}

// Token is the right of a program or person to act for a tenant.
type Token struct {
	// ID names the token in lists and in the history; it is no secret.
	ID     string `json:"id"`
	Tenant string `json:"tenant"`
	// Sum is the SHA-256 of the secret, in hex.
	Sum string `json:"sum"`
	// Maker is who answers for the token: the caller of the same tenant who made
	// it, or whoever answers for him; the token itself if another tenant's caller
	// made it, as the provider does.
	Maker string `json:"maker"`
	// By is the caller who made it. One that a token made ends with that token.
	By string `json:"by,omitempty"`
	// ReadOnly tokens change nothing.
	ReadOnly bool `json:"read_only,omitempty"`
	// Keys, unless none, bind the token to the partitions with these numbers: it
	// sees and changes no other, and nothing but partitions and members.
	Keys    KeyRange  `json:"keys,omitzero"`
	Note    string    `json:"note,omitempty"`
	Created time.Time `json:"created"`
	// Expires is when the token ends; zero for never.
	Expires time.Time `json:"expires,omitzero"`
}

// Port is an end port that the provider gave to a tenant. A port without an object
// is the provider's.
type Port struct {
	GUID  ib.PortGUID `json:"guid"`
	Owner string      `json:"owner"`
	// Switch and SwitchPort bind the port to a place: only the device that is
	// cabled there, and has the GUID, gets its keys. Switch 0: no place.
	// One place is that of one port.
	Switch     ib.NodeGUID `json:"switch,omitempty"`
	SwitchPort ib.PortNum  `json:"switch_port,omitempty"`
	// Released is the revision at which the last owner lost the port; Owner is then
	// empty, until the release has been proved and the provider gives it away again.
	Released uint64 `json:"released,omitempty"`
}

// Pool is a range of GUIDs that the provider gave to a tenant, for virtual functions
// that get their GUIDs from it later. A Port object for one of them goes before it.
type Pool struct {
	First ib.PortGUID `json:"first"`
	Last  ib.PortGUID `json:"last"`
	Owner string      `json:"owner"`
	// Released is as in Port.
	Released uint64 `json:"released,omitempty"`
}

// Has reports whether a GUID is in the pool.
func (p *Pool) Has(g ib.PortGUID) bool { return p.First <= g && g <= p.Last }

// Partition is a partition that was made by the API.
type Partition struct {
	PKey  ib.PKeyBase `json:"pkey,omitempty"`
	Name  string      `json:"name"`
	Owner string      `json:"owner"`
	// SL is the service level of paths in the partition.
	SL ib.SL `json:"sl"`
	// MTU and Rate limit its multicast groups; zero for the default.
	MTU  ib.MTU  `json:"mtu,omitempty"`
	Rate ib.Rate `json:"rate,omitempty"`
	// IPoIB has the broadcast group of IP over InfiniBand made.
	IPoIB bool `json:"ip_over_ib"`
	// Labels are for its owner and the provider. Nothing is decided by them.
	Labels LabelSet `json:"labels,omitempty"`
}

// LabelsFor are the labels as a caller sees them, or chooses by: its owner and the provider do.
func (p *Partition) LabelsFor(c Caller) LabelSet {
	if c.IsProvider() || p.Owner == c.Tenant {
		return p.Labels
	}
	return ""
}

// Member is a port in a partition, or one that is asked for.
type Member struct {
	PKey       ib.PKeyBase       `json:"pkey,omitempty"`
	Port       ib.PortGUID       `json:"port"`
	Membership policy.Membership `json:"membership,omitempty"`
	// Index0 puts the key at index 0 of the port's table.
	Index0 bool `json:"index0,omitempty"`
	// Host is the name by which it was added, if that was by the name of a host.
	Host string `json:"host,omitempty"`
	// ByPartition and ByPort tell that the owner of the partition, and that of the
	// port, agreed.
	ByPartition bool `json:"by_partition"`
	ByPort      bool `json:"by_port"`
	// Owner and PortOwner are who owned the partition and the port when the consents
	// were given. They hold for nobody else.
	Owner     string `json:"owner,omitempty"`
	PortOwner string `json:"port_owner,omitempty"`
	// Asked is what one of the owners asks for beyond what both agreed to.
	Asked Ask `json:"asked,omitzero"`
}

// Ask is a wider membership that waits for the other owner; the zero Ask is none.
type Ask struct {
	Membership policy.Membership `json:"membership,omitempty"`
	Index0     bool              `json:"index0,omitempty"`
	// ByPartition reports whether the owner of the partition asks, else that of the port.
	ByPartition bool `json:"by_partition,omitempty"`
}

// Agreed reports whether both owners agreed: only then does the port get the key.
func (m *Member) Agreed() bool { return m.ByPartition && m.ByPort }

// Removed remembers that a port was removed from a partition, so that a late or
// repeated write does not bring it back unseen. Port 0 remembers that the policy
// file gave up the number.
type Removed struct {
	PKey ib.PKeyBase `json:"pkey,omitempty"`
	Port ib.PortGUID `json:"port"`
	// Owner owned the partition.
	Owner string    `json:"owner"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Approval is a change that takes something away and waits for a second person, or an offer of
// ports, which waits for the tenant to which they are offered.
type Approval struct {
	ID string `json:"id"`
	// Tenant is whose callers approve it; of an offer there may be no such tenant.
	Tenant string `json:"tenant"`
	// From is the tenant that offers ports; empty for what is no offer.
	From string `json:"from,omitempty"`
	// By is the caller who asked for it, Maker who answers for him (Token.Maker).
	By    string `json:"by"`
	Maker string `json:"maker"`
	// Keys are the caller's.
	Keys KeyRange  `json:"keys,omitzero"`
	At   time.Time `json:"at"`
	// Expires is when nobody can approve it any more.
	Expires time.Time `json:"expires"`
	Why     string    `json:"why,omitempty"`
	Action  string    `json:"action"`
	// Change is the change as EncodeChange wrote it, Words what it was to do.
	Change json.RawMessage `json:"change"`
	Words  []string        `json:"words"`
	// Seen is the Request's; Revision was the last one when it was asked for.
	Seen     uint64 `json:"seen"`
	Revision uint64 `json:"revision"`
}

// File is a policy file that was applied. Its partitions are the provider's.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
	// AllowBoth is the option of partitions.conf.
	AllowBoth bool `json:"allow_both,omitempty"`
	// Numbers are those of its partitions that state none. PutFile gives them.
	Numbers map[string]ib.PKeyBase `json:"numbers,omitempty"`
	// Left are the names of its partitions that were left to the API, which had
	// them already just as the file has them. PutFile finds them.
	Left []string `json:"left,omitempty"`

	parsed *policy.Policy
}

// Restored reports whether the provider accepted a store that was rolled back, as it was: Last was
// its last revision, and First to Seen were given up, none for 0. The ID is another one each time.
type Restored struct {
	ID    string    `json:"id"`
	Last  uint64    `json:"last"`
	First uint64    `json:"first,omitempty"`
	Seen  uint64    `json:"seen,omitempty"`
	At    time.Time `json:"at"`
	By    string    `json:"by"`
	Why   string    `json:"why"`
}

// Key implements Object.
func (x *Restored) Key() string { return key(KindRestored, x.ID) }

// Key implements Object.
func (t *Tenant) Key() string    { return key(KindTenant, t.Name) }
func (t *Token) Key() string     { return key(KindToken, t.ID) }
func (p *Port) Key() string      { return PortKey(p.GUID) }
func (p *Pool) Key() string      { return key(KindPool, p.First.String()) }
func (p *Partition) Key() string { return PartitionKey(p.PKey) }
func (m *Member) Key() string    { return MemberKey(m.PKey, m.Port) }
func (r *Removed) Key() string   { return RemovedKey(r.PKey, r.Port) }
func (a *Approval) Key() string  { return key(KindApproval, a.ID) }

// Key implements Object. There is one file.
func (f *File) Key() string { return key(KindFile, "policy") }

func key(k Kind, id string) string { return string(k) + "/" + id }

func memberID(k ib.PKeyBase, g ib.PortGUID) string { return k.String() + "/" + g.String() }

// PartitionKey is the key of the partition with a number.
func PartitionKey(k ib.PKeyBase) string { return key(KindPartition, k.String()) }

// PortKey is the key of a port.
func PortKey(g ib.PortGUID) string { return key(KindPort, g.String()) }

// MemberKey is the key of a member.
func MemberKey(k ib.PKeyBase, g ib.PortGUID) string { return key(KindMember, memberID(k, g)) }

// RemovedKey is the key of what is remembered of a removed member.
func RemovedKey(k ib.PKeyBase, g ib.PortGUID) string { return key(KindRemoved, memberID(k, g)) }

// Decode reads an object as json.Marshal wrote it. A field that is not known is an error: a
// newer version wrote it, and what it says may be a limit that this one would not keep.
func Decode(key string, data []byte) (Object, error) {
	kind, _, _ := strings.Cut(key, "/")
	var o Object
	switch Kind(kind) {
	case KindTenant:
		o = new(Tenant)
	case KindToken:
		o = new(Token)
	case KindPort:
		o = new(Port)
	case KindPool:
		o = new(Pool)
	case KindPartition:
		o = new(Partition)
	case KindMember:
		o = new(Member)
	case KindRemoved:
		o = new(Removed)
	case KindApproval:
		o = new(Approval)
	case KindFile:
		o = new(File)
	case KindDrain:
		o = new(Drain)
	case KindAcknowledgement:
		o = new(Acknowledgement)
	case KindRestored:
		o = new(Restored)
	default:
		return nil, fmt.Errorf("object %q: unknown kind %q", key, kind)
	}
	if err := UnmarshalStored(data, o); err != nil {
		return nil, fmt.Errorf("object %q: %w", key, err)
	}
	if o.Key() != key {
		return nil, fmt.Errorf("object %q: its content is that of %q", key, o.Key())
	}
	return o, nil
}
