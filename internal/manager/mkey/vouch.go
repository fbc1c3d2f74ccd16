package mkey

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"

	"github.com/ibwarden/ibwarden/ib"
)

// PolicySum is what a manager tells another of the policy in force: of equal digests the same,
// and nothing else to whom the secret is not known.
func (r *Ring) PolicySum(digest [sha256.Size]byte) (sum [16]byte) {
	copy(sum[:], r.mac(labelRules, digest[:]))
	return sum
}

// Vouch is the proof of an answer about the policy: the manager at port from gives it to the
// one at port to, which has chosen the nonce for one question.
func (r *Ring) Vouch(from, to ib.PortGUID, nonce, sum [16]byte) (proof [24]byte) {
	message := binary.BigEndian.AppendUint64(nil, uint64(from))
	message = binary.BigEndian.AppendUint64(message, uint64(to))
	message = append(append(message, nonce[:]...), sum[:]...)
	copy(proof[:], r.mac(labelVouch, message))
	return proof
}

// mac is the HMAC of a message of a kind, which has always the same length.
func (r *Ring) mac(label string, message []byte) []byte {
	m := hmac.New(sha256.New, r.secret[:])
	m.Write([]byte(label))
	m.Write(message)
	return m.Sum(nil)
}
