package files

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/sa"
	"github.com/ibwarden/ibwarden/internal/resource"
	"github.com/ibwarden/ibwarden/internal/service"
	"github.com/ibwarden/ibwarden/internal/store"
)

// Prefix begins the keys of the objects in which a manager keeps what it shares.
const Prefix = service.ManagerPrefix

const (
	// objectsVersion is that of the format that this package writes.
	objectsVersion = 1
	headKey        = Prefix + "head"
	partPrefix     = Prefix + "part/"
	// parts is into how many objects everything is dealt out, by the hash of what each
	// entry is about: a change writes one or two of them, of some thousand bytes on a
	// fabric of some thousand hosts.
	parts        = 512
	cablesPrefix = Prefix + "cables/"
	// cablesChunk is how much of the list of cables is in one object, in bytes.
	cablesChunk = 128 << 10
	// ObjectsMax bounds what is read and written, in bytes of all objects.
	ObjectsMax = store.MaxCommit / 2
	// leaseStep is to what the end of a lease is rounded up, so that saving again does not
	// change every service: a service may outlive its lease by so much.
	leaseStep = 4 * time.Second
	// withoutEnd is what is left of a lease that does not end.
	withoutEnd = time.Duration(math.MinInt64)
)

// head is the object that says what the others are. It is written with every change.
type head struct {
	Version int `json:"version"`
	// Manager is the port of the manager that wrote it; empty for as long as it does not
	// know what hosts registered before.
	Manager  string `json:"manager,omitempty"`
	Sequence uint64 `json:"sequence"` // of the change
	Salt     string `json:"salt"`     // of the deal, and of the sum of the SA_Key
	KeySum   string `json:"sa_key_sum"`
	Secret   string `json:"secret_sum,omitempty"`
	Serial   uint64 `json:"groups_made"`
	Aliases  bool   `json:"aliases,omitempty"`
	Managed  bool   `json:"managed,omitempty"`
}

// part is one of the objects among which everything is dealt out.
type part struct {
	LIDs          map[string]ib.LID      `json:"lids,omitempty"`
	PKeys         map[string]ib.PKeyBase `json:"pkeys,omitempty"`
	Forgets       map[string][]string    `json:"forgets,omitempty"`
	Fenced        []string               `json:"fenced,omitempty"`
	Fences        map[string]string      `json:"fences,omitempty"`
	Names         []string               `json:"names,omitempty"`
	Groups        []groupEntry           `json:"groups,omitempty"`
	Members       []dealtMember          `json:"members,omitempty"`
	Retired       map[string]ib.PKeyBase `json:"retired_mlids,omitempty"`
	Services      []dealtService         `json:"services,omitempty"`
	Subscriptions []subscriptionEntry    `json:"subscriptions,omitempty"`
	AliasGUIDs    map[string][]string    `json:"alias_guids,omitempty"`
	Used          []json.RawMessage      `json:"keys_used,omitempty"`
	Keys          []json.RawMessage      `json:"keys,omitempty"`
}

// chunk is an object with a part of the list of cables.
type chunk struct {
	Text string `json:"text,omitempty"`
}

// dealtMember is a member, and of which group.
type dealtMember struct {
	MGID string `json:"mgid"`
	memberEntry
}

// dealtService is a service, and when its lease ends, in seconds since 1970; 0 for never.
type dealtService struct {
	Port   string `json:"port"`
	Record string `json:"record"`
	Until  int64  `json:"until"`
}

// bookForm is a key book as JSON.
type bookForm struct {
	Version int               `json:"version"`
	Used    []json.RawMessage `json:"used"`
	Ports   []json.RawMessage `json:"ports"`
}

// bookVersion is the version of a book that is dealt out.
const bookVersion = 1

// Objects is what a store has of all this. The zero value has nothing.
type Objects struct {
	head  head
	some  bool // there is a head
	parts map[string]*part
	lists map[string]chunk
	sums  map[string][sha256.Size]byte
	sizes map[string]int
	size  int
	bad   map[string]error // what could not be read, by key
}

// Sequence is the number of the last change; 0 where there is none.
func (o *Objects) Sequence() uint64 { return o.head.Sequence }

// Has reports whether an object is in the store as it is here.
func (o *Objects) Has(x store.Object) bool {
	sum, there := o.sums[x.Key]
	return there && sum == sha256.Sum256(x.Value)
}

// Enter enters objects as they are in the store. What is wrong with one is said by All.
func (o *Objects) Enter(list []store.Object) {
	if o.parts == nil {
		o.parts, o.lists = map[string]*part{}, map[string]chunk{}
		o.sums, o.bad, o.sizes = map[string][sha256.Size]byte{}, map[string]error{}, map[string]int{}
	}
	for _, x := range list {
		o.size += len(x.Value) - o.sizes[x.Key]
		o.sums[x.Key], o.sizes[x.Key] = sha256.Sum256(x.Value), len(x.Value)
		delete(o.bad, x.Key)
		var err error
		switch {
		case x.Key == headKey:
			o.head, o.some = head{}, true
			if err = resource.UnmarshalStored(x.Value, &o.head); err == nil && o.head.Version != objectsVersion {
				err = fmt.Errorf("version %d, want %d", o.head.Version, objectsVersion)
			}
		case strings.HasPrefix(x.Key, partPrefix):
			p := new(part)
			if err = resource.UnmarshalStored(x.Value, p); err == nil {
				o.parts[x.Key] = p
			}
		case strings.HasPrefix(x.Key, cablesPrefix):
			var c chunk
			if err = resource.UnmarshalStored(x.Value, &c); err == nil {
				o.lists[x.Key] = c
			}
		default:
			err = errors.New("it is not known what it is")
		}
		if err != nil {
			o.bad[x.Key] = err
		}
	}
}

// All is what the objects say, with the leases that have not ended; some is false where
// there is nothing. One object that is damaged makes all of it refused.
func (o *Objects) All(saKey ib.SMKey, now time.Time) (a All, some bool, err error) {
	if !o.some && len(o.bad) == 0 {
		return a, false, nil
	}
	for _, key := range slices.Sorted(maps.Keys(o.bad)) {
		return a, false, fmt.Errorf("%s: %w", key, o.bad[key])
	}
	if o.size > ObjectsMax {
		return a, false, fmt.Errorf("%s: %d bytes, want at most %d", Prefix, o.size, ObjectsMax)
	}
	state, book, err := o.gather(now)
	if err != nil {
		return a, false, err
	}
	if a.Assigned, err = state.assigned(); err != nil {
		return a, false, fmt.Errorf("%s: %w", Prefix, err)
	}
	if a.Registered, err = state.Administration.decode(saKey); err != nil {
		return a, false, fmt.Errorf("%s: administration: %w", Prefix, err)
	}
	for _, key := range slices.Sorted(maps.Keys(o.lists)) {
		a.Cables = append(a.Cables, o.lists[key].Text...)
	}
	if a.Secret = o.head.Secret; a.Secret != "" {
		a.Book, err = json.Marshal(book)
	}
	return a, true, err
}

// gather puts together what was dealt out: the form of a file, which is checked as one is.
func (o *Objects) gather(now time.Time) (s stateFile, b bookForm, err error) {
	f := &administrationFile{
		Saved: now, Salt: o.head.Salt, KeySum: o.head.KeySum, Manager: o.head.Manager, Serial: o.head.Serial,
		Retired: map[string]ib.PKeyBase{}, AliasGUIDs: map[string][]string{},
	}
	s = stateFile{
		Version: stateVersion, Aliases: o.head.Aliases, Managed: o.head.Managed, Administration: f,
		LIDs: map[string]ib.LID{}, PKeys: map[string]ib.PKeyBase{}, Forgets: map[string][]string{}, Fences: map[string]string{},
	}
	b = bookForm{Version: bookVersion, Used: []json.RawMessage{}, Ports: []json.RawMessage{}}
	var members []dealtMember
	for _, key := range slices.Sorted(maps.Keys(o.parts)) {
		p := o.parts[key]
		maps.Copy(s.LIDs, p.LIDs)
		maps.Copy(s.PKeys, p.PKeys)
		maps.Copy(s.Forgets, p.Forgets)
		maps.Copy(s.Fences, p.Fences)
		maps.Copy(f.Retired, p.Retired)
		maps.Copy(f.AliasGUIDs, p.AliasGUIDs)
		s.Fenced, s.Names = append(s.Fenced, p.Fenced...), append(s.Names, p.Names...)
		f.Groups, members = append(f.Groups, p.Groups...), append(members, p.Members...)
		for _, x := range p.Services {
			left := time.Unix(x.Until, 0).Sub(now)
			f.Services = append(f.Services, serviceEntry{Port: x.Port, Record: x.Record, Left: left})
		}
		f.Subscriptions = append(f.Subscriptions, p.Subscriptions...)
		b.Used, b.Ports = append(b.Used, p.Used...), append(b.Ports, p.Keys...)
	}
	slices.SortFunc(f.Groups, func(a, b groupEntry) int { return cmp.Compare(a.MGID, b.MGID) })
	at := make(map[string]*groupEntry, len(f.Groups))
	for i := range f.Groups {
		at[f.Groups[i].MGID] = &f.Groups[i]
	}
	for _, m := range members {
		g := at[m.MGID]
		if g == nil {
			return s, b, fmt.Errorf("%s: member %s of multicast group %s: there is no such group", Prefix, m.Port, m.MGID)
		}
		g.Members = append(g.Members, m.memberEntry)
	}
	slices.SortFunc(f.Services, func(a, b serviceEntry) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Record, b.Record))
	})
	slices.SortFunc(f.Subscriptions, func(a, b subscriptionEntry) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Enum, b.Enum))
	})
	return s, b, nil
}

// Changes are the objects that a store which has o lacks of a; none where it has it all.
func (o *Objects) Changes(a *All, now time.Time) ([]store.Object, error) {
	form, err := a.Registered.encode()
	if err != nil {
		return nil, err
	}
	h := head{
		Version: objectsVersion, Manager: form.Manager, Sequence: o.head.Sequence, Salt: o.head.Salt,
		Secret: a.Secret, Serial: form.Serial, Aliases: a.Assigned.Aliases, Managed: a.Assigned.Managed,
	}
	salt, err := hex.DecodeString(h.Salt)
	if err != nil || len(salt) != saltSize {
		salt = make([]byte, saltSize)
		rand.Read(salt) // never fails
		h.Salt = hex.EncodeToString(salt)
	}
	h.KeySum = keySum(salt, a.Registered.SAKey)
	for i := range a.Registered.Services {
		if a.Registered.Services[i].Record.ServiceLease == sa.ServiceLeaseForever {
			form.Services[i].Left = withoutEnd
		}
	}
	d := dealer{salt: salt, parts: make([]part, parts)}
	state := formOf(a.Assigned, form)
	d.deal(&state, form, now)
	if err := d.dealBook(a.Book); err != nil {
		return nil, err
	}
	out, err := o.lacks(&d, a.Cables)
	if err != nil {
		return nil, err
	}
	if len(out) == 0 && o.some && h == o.head {
		return nil, nil
	}
	h.Sequence++
	value, err := json.Marshal(h)
	return append(out, store.Object{Key: headKey, Value: value}), err
}

// lacks are the objects, without the head, that a store which has o lacks of what was dealt
// and of a list of cables.
func (o *Objects) lacks(d *dealer, list []byte) (out []store.Object, err error) {
	all := map[string]any{}
	for i := range d.parts {
		all[partKey(i)] = &d.parts[i]
	}
	for i := 0; len(list) > 0; i++ {
		n := min(len(list), cablesChunk)
		all[fmt.Sprintf("%s%03x", cablesPrefix, i)] = chunk{string(list[:n])}
		list = list[n:]
	}
	for key := range o.sums { // of what there is less now, or what nobody knows
		if all[key] == nil && key != headKey {
			all[key] = struct{}{}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		value, err := json.Marshal(all[key])
		if err != nil {
			return nil, err
		}
		sum, there := o.sums[key]
		if !there && string(value) == "{}" || there && sum == sha256.Sum256(value) {
			continue
		}
		out = append(out, store.Object{Key: key, Value: value})
	}
	return out, nil
}

func partKey(i int) string { return fmt.Sprintf("%s%03x", partPrefix, i) }

// dealer deals everything out among parts.
type dealer struct {
	salt  []byte
	parts []part
}

// of is the part of what is called so. Who does not know the salt cannot fill one part.
func (d *dealer) of(kind, name string) *part {
	h := sha256.New()
	h.Write(d.salt)
	h.Write([]byte(kind))
	h.Write([]byte{0})
	h.Write([]byte(name))
	return &d.parts[binary.BigEndian.Uint32(h.Sum(nil))%uint32(len(d.parts))]
}

func enter[V any](m *map[string]V, key string, v V) {
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// deal deals out the form of a file, in an order that is always the same.
func (d *dealer) deal(s *stateFile, f *administrationFile, now time.Time) {
	for key, v := range s.LIDs {
		enter(&d.of("lid", key).LIDs, key, v)
	}
	for key, v := range s.PKeys {
		enter(&d.of("pkey", key).PKeys, key, v)
	}
	for key, v := range s.Forgets {
		enter(&d.of("forgets", key).Forgets, key, v)
	}
	for key, v := range s.Fences {
		enter(&d.of("fence", key).Fences, key, v)
	}
	for _, key := range s.Fenced { // sorted
		p := d.of("fenced", key)
		p.Fenced = append(p.Fenced, key)
	}
	for _, key := range s.Names { // sorted
		p := d.of("name", key)
		p.Names = append(p.Names, key)
	}
	for key, v := range f.Retired {
		enter(&d.of("retired", key).Retired, key, v)
	}
	for key, v := range f.AliasGUIDs {
		enter(&d.of("alias", key).AliasGUIDs, key, v)
	}
	slices.SortFunc(f.Groups, func(a, b groupEntry) int { return cmp.Compare(a.MGID, b.MGID) })
	for _, g := range f.Groups {
		slices.SortFunc(g.Members, func(a, b memberEntry) int { return cmp.Compare(a.Port, b.Port) })
		for _, m := range g.Members {
			p := d.of("member", g.MGID+" "+m.Port)
			p.Members = append(p.Members, dealtMember{g.MGID, m})
		}
		g.Members = nil
		p := d.of("group", g.MGID)
		p.Groups = append(p.Groups, g)
	}
	slices.SortFunc(f.Services, func(a, b serviceEntry) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Record, b.Record))
	})
	for _, x := range f.Services {
		p := d.of("service", x.Port+x.Record)
		until := int64(0)
		if x.Left != withoutEnd {
			until = now.Add(x.Left + leaseStep - 1).Truncate(leaseStep).Unix()
		}
		p.Services = append(p.Services, dealtService{x.Port, x.Record, until})
	}
	slices.SortFunc(f.Subscriptions, func(a, b subscriptionEntry) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Enum, b.Enum))
	})
	for _, x := range f.Subscriptions {
		p := d.of("subscription", fmt.Sprint(x.Port, " ", x.Enum))
		p.Subscriptions = append(p.Subscriptions, x)
	}
}

// dealBook deals out a key book.
func (d *dealer) dealBook(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var b bookForm
	if err := json.Unmarshal(data, &b); err != nil {
		return fmt.Errorf("key book: %w", err)
	}
	if b.Version != bookVersion {
		return fmt.Errorf("key book: version %d, want %d", b.Version, bookVersion)
	}
	name := func(x json.RawMessage) (*part, error) {
		var id struct {
			Node string `json:"node_guid"`
			Port string `json:"port_guid"`
		}
		err := json.Unmarshal(x, &id)
		return d.of("key", id.Node+" "+id.Port), err
	}
	for _, x := range b.Used {
		p, err := name(x)
		if err != nil {
			return err
		}
		p.Used = append(p.Used, x)
	}
	for _, x := range b.Ports {
		p, err := name(x)
		if err != nil {
			return err
		}
		p.Keys = append(p.Keys, x)
	}
	return nil
}
