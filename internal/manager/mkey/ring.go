package mkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/ibwarden/ibwarden/ib"
)

// SecretSize is the length of a master secret in bytes.
const SecretSize = 32

// The labels that keep kinds of keys apart. What stands behind a label has
// always the same length, so that no two messages are the same.
const (
	labelMKey  = "ibwarden M_Key 1"
	labelSMKey = "ibwarden SM_Key 1"
	labelSAKey = "ibwarden SA_Key 1"
	labelSum   = "ibwarden sum 1"
	labelRules = "ibwarden policy 1"
	labelVouch = "ibwarden policy answer 1"
)

// Ring is a master secret. It does not print it, and has no exported field.
type Ring struct{ secret [SecretSize]byte }

// NewRing returns the keys that a master secret makes.
func NewRing(secret [SecretSize]byte) *Ring { return &Ring{secret} }

// String names the value and hides it, whatever verb it is printed with.
func (r *Ring) String() string { return "master secret" }

// GoString is String, for %#v.
func (r *Ring) GoString() string { return r.String() }

// ID names an end port: a port of a CA or router, or port 0 of a switch.
type ID struct {
	Node ib.NodeGUID
	Port ib.PortGUID
}

// Generation counts the keys that a port has had, from 1; 0 stands for none.
type Generation uint32

// MKey is the M_Key of a port in a generation; never 0. Two ports have the same
// one with a chance of 1 in 2^64, as have two generations.
func (r *Ring) MKey(of ID, g Generation) ib.MKey {
	return ib.MKey(r.derive(labelMKey, uint64(of.Node), uint64(of.Port), uint64(g)))
}

// SMKey is what the manager at port from shows the manager at port to, and by
// which that knows it; never 0. The two directions differ: who is shown a key
// cannot show it in turn.
func (r *Ring) SMKey(from, to ib.PortGUID) ib.SMKey {
	return ib.SMKey(r.derive(labelSMKey, uint64(from), uint64(to)))
}

// SAKey is the key that makes a query of subnet administration trusted; never 0.
func (r *Ring) SAKey() ib.SMKey { return ib.SMKey(r.derive(labelSAKey)) }

// derive is the first 64 bits of an HMAC that are not 0.
func (r *Ring) derive(label string, values ...uint64) uint64 {
	mac := hmac.New(sha256.New, r.secret[:])
	message := []byte(label)
	for _, v := range values {
		message = binary.BigEndian.AppendUint64(message, v)
	}
	for {
		mac.Write(message)
		sum := mac.Sum(nil)
		for ; len(sum) >= 8; sum = sum[8:] {
			if key := binary.BigEndian.Uint64(sum); key != 0 {
				return key
			}
		}
		message = append(message, 0) // once in 2^256
	}
}

// Sum tells this secret from another, and tells nothing else about it.
func (r *Ring) Sum() string { return fmt.Sprintf("%016x", r.derive(labelSum)) }
