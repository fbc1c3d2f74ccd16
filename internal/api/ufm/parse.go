package ufm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/api/listen"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/resource"
)

// pkeyFull is the bit of a P_Key that says full; it is no part of the number.
const pkeyFull = 0x8000

// parseKey reads a partition number: 0x5, 0x0005, 0x8005, 0X7FFF or decimal.
func parseKey(text string) (ib.PKeyBase, error) {
	digits, base := text, 10
	if rest, hex := strings.CutPrefix(strings.ToLower(text), "0x"); hex {
		digits, base = rest, 16
	}
	n, err := strconv.ParseUint(digits, base, 16)
	if err != nil || n&^pkeyFull == 0 {
		return 0, wrong(http.StatusBadRequest, "pkey %.40q: want 0x1 to 0x7ffe", text)
	}
	return ib.PKeyBase(n &^ pkeyFull), nil
}

// keyText is a partition number as UFM writes it.
func keyText(k ib.PKeyBase) string { return "0x" + strconv.FormatUint(uint64(k), 16) }

// guidText is a GUID as UFM writes it. Clients cut it every two digits.
func guidText(g uint64) string {
	s := strconv.FormatUint(g, 16)
	return strings.Repeat("0", guidDigits-len(s)) + s
}

const (
	guidDigits    = 16 // hexadecimal digits of a GUID
	guidDigitsMax = 20 // that UFM takes; those before the last 16 are zeros
)

// parseGUID reads a GUID: 16 to 20 hexadecimal digits, also with 0x, colons or dashes.
func parseGUID(text string) (ib.PortGUID, error) {
	digits := strings.ToLower(strings.TrimSpace(text))
	digits = strings.TrimPrefix(digits, "0x")
	if strings.ContainsAny(digits, ":-") {
		digits = strings.NewReplacer(":", "", "-", "").Replace(digits)
	}
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil || len(digits) < guidDigits || len(digits) > guidDigitsMax || n == 0 {
		return 0, wrong(http.StatusBadRequest, "GUID %.40q: want 16 hexadecimal digits", text)
	}
	return ib.PortGUID(n), nil
}

// parseGUIDs reads a list of GUIDs, each of which may be there again.
func parseGUIDs(list []string) ([]ib.PortGUID, error) {
	if len(list) > MaxGUIDs {
		return nil, wrong(http.StatusBadRequest, "guids: there are %d, want at most %d", len(list), MaxGUIDs)
	}
	out := make([]ib.PortGUID, 0, len(list))
	for _, text := range list {
		g, err := parseGUID(text)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// parseMembership reads full, limited or both; full for "".
func parseMembership(text string) (policy.Membership, error) {
	switch strings.ToLower(text) {
	case "", "full":
		return policy.Full, nil
	case "limited":
		return policy.Limited, nil
	case "both":
		return policy.Both, nil
	}
	return 0, wrong(http.StatusBadRequest, "membership %.40q: want full or limited", text)
}

// rates are those that clients take, in tenths of Gb/s, ascending.
var rates = []int{25, 50, 100, 140, 200, 250, 300, 400, 560, 600, 800, 1000, 1120, 1200, 1680, 2000, 3000}

// parseRate reads a rate in Gb/s; 2 stands for 2.5.
func parseRate(gbps float64) (ib.Rate, error) {
	if gbps == 2 {
		gbps = 2.5
	}
	for _, t := range rates {
		if gbps*10 == float64(t) {
			return ib.RateFromGbps(t)
		}
	}
	return 0, wrong(http.StatusBadRequest, "rate_limit %v: want 2.5, 5, 10, 14, 20, 25, 30, 40, 56, 60, 80, 100, 112, 120, 168, 200 or 300", gbps)
}

// shownRate is the rate that clients are shown: r, or the next lower one that they take.
func shownRate(r ib.Rate) float64 {
	shown := rates[0]
	for _, t := range rates {
		if t <= r.Tenths() {
			shown = t
		}
	}
	return float64(shown) / 10
}

// parseMTU reads an MTU in KiB, or in bytes.
func parseMTU(n float64) (ib.MTU, error) {
	switch n {
	case 2, 2048:
		return ib.MTU2048, nil
	case 4, 4096:
		return ib.MTU4096, nil
	}
	return 0, wrong(http.StatusBadRequest, "mtu_limit %v: want 2 or 4", n)
}

// shownMTU is the MTU that clients are shown, in KiB: they take 2 and 4.
func shownMTU(m ib.MTU) int {
	if m == ib.MTU4096 {
		return 4
	}
	return 2
}

// flag is a boolean that may be missing; clients also send it as a string, or as 0 and 1.
type flag struct{ is, value bool }

// UnmarshalJSON implements json.Unmarshaler.
func (f *flag) UnmarshalJSON(data []byte) error {
	text := strings.ToLower(strings.Trim(string(data), `"`))
	switch text {
	case "null", "", "none":
		*f = flag{}
	case "true", "1":
		*f = flag{true, true}
	case "false", "0":
		*f = flag{true, false}
	default:
		return wrong(http.StatusBadRequest, "%.40s: want true or false", data)
	}
	return nil
}

// or is the value, or what it is when it is missing.
func (f flag) or(missing bool) bool {
	if f.is {
		return f.value
	}
	return missing
}

// pointer is nil for a flag that is missing.
func (f flag) pointer() *bool {
	if !f.is {
		return nil
	}
	return &f.value
}

// truth reads a flag of a query: true in any case, and 1.
func truth(text string) bool { return strings.EqualFold(text, "true") || text == "1" }

// text is a string; clients also send a number.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err == nil {
		*t = text(s)
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(data, &n); err != nil {
		return wrong(http.StatusBadRequest, "%.40s: want a string", data)
	}
	*t = text(n)
	return nil
}

// words is a list of strings; clients also send them in one, with commas. It is nil
// where there is none: only [] says that it is to be empty.
type words []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *words) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err == nil {
		if *l = splitWords(s); len(*l) == 0 {
			*l = nil
		}
		return nil
	}
	var list []string
	if err := json.Unmarshal(data, &list); err != nil {
		return wrong(http.StatusBadRequest, "%.40s: want a list of strings", data)
	}
	*l = list
	return nil
}

// splitWords splits at commas and drops what is empty.
func splitWords(s string) words {
	out := words{}
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// number is a number that may be missing; clients also send it as a string.
type number struct {
	is    bool
	value float64
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*n = number{}
		return nil
	}
	v, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return wrong(http.StatusBadRequest, "%.40s: want a number", data)
	}
	*n = number{true, v}
	return nil
}

// body is what calls may say; each uses some of it.
type body struct {
	PKey        text   `json:"pkey"`
	GUIDs       words  `json:"guids"`
	Membership  text   `json:"membership"`
	Memberships words  `json:"memberships"`
	Index0      flag   `json:"index0"`
	IPoIB       flag   `json:"ip_over_ib"`
	Name        text   `json:"partition_name"`
	NamePrefix  text   `json:"pkey_name_prefix"`
	MTU         number `json:"mtu_limit"`
	SL          number `json:"service_level"`
	Rate        number `json:"rate_limit"`
	Hosts       words  `json:"hosts_names"`

	key ib.PKeyBase
}

// body reads the body of a call with its key. What it has besides is passed over.
func (c *call) body() (*body, error) {
	data, err := io.ReadAll(c.r.Body)
	if err != nil {
		var long *http.MaxBytesError
		if errors.As(err, &long) {
			return nil, wrong(http.StatusRequestEntityTooLarge, "body: want at most %d bytes", MaxBody)
		}
		return nil, wrong(http.StatusBadRequest, "body: it did not arrive whole")
	}
	if !bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n"), []byte("{")) {
		return nil, wrong(http.StatusBadRequest, "body: want a JSON object")
	}
	b := new(body)
	if err := listen.Unmarshal(data, b); err != nil {
		var f *fault
		if errors.As(err, &f) {
			return nil, f
		}
		return nil, wrong(http.StatusBadRequest, "body: want a JSON object: %.200v", err)
	}
	b.key, err = parseKey(string(b.PKey))
	return b, err
}

// members are the members that a body names: memberships by index, or the one for all.
func (b *body) members() ([]resource.Member, error) {
	guids, err := parseGUIDs(b.GUIDs)
	if err != nil {
		return nil, err
	}
	if len(b.Memberships) != 0 && len(b.Memberships) != len(guids) {
		return nil, wrong(http.StatusBadRequest, "memberships: there are %d for %d guids, want as many", len(b.Memberships), len(guids))
	}
	one, err := parseMembership(string(b.Membership))
	if err != nil {
		return nil, err
	}
	at := make(map[ib.PortGUID]int, len(guids))
	list := make([]resource.Member, 0, len(guids))
	for i, g := range guids {
		m := resource.Member{Port: g, Membership: one, Index0: b.Index0.or(false)}
		if len(b.Memberships) > 0 {
			if m.Membership, err = parseMembership(b.Memberships[i]); err != nil {
				return nil, err
			}
		}
		if j, again := at[g]; again {
			if list[j] != m {
				return nil, wrong(http.StatusBadRequest, "guids: %s is there twice, with different memberships", guidText(uint64(g)))
			}
			continue
		}
		at[g] = len(list)
		list = append(list, m)
	}
	return list, nil
}

// qos are the values of a body that limit a partition; nil where it has none.
func (b *body) qos() (mtu *ib.MTU, sl *ib.SL, rate *ib.Rate, err error) {
	if b.MTU.is {
		m, err := parseMTU(b.MTU.value)
		if err != nil {
			return nil, nil, nil, err
		}
		mtu = &m
	}
	if b.SL.is {
		if b.SL.value != math.Trunc(b.SL.value) || b.SL.value < 0 || b.SL.value > policy.SLMax {
			return nil, nil, nil, wrong(http.StatusBadRequest, "service_level %v: want 0 to %d", b.SL.value, policy.SLMax)
		}
		s := ib.SL(b.SL.value)
		sl = &s
	}
	if b.Rate.is {
		r, err := parseRate(b.Rate.value)
		if err != nil {
			return nil, nil, nil, err
		}
		rate = &r
	}
	return mtu, sl, rate, nil
}

// namePrefix begins the names of partitions for which no name is given.
const namePrefix = "api_pkey_"

// name is what a new partition of a body is called.
func (b *body) name() string {
	switch {
	case b.Name != "":
		return string(b.Name)
	case b.NamePrefix != "":
		return string(b.NamePrefix) + keyText(b.key)
	}
	return namePrefix + keyText(b.key)
}
