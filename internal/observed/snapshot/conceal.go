package snapshot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/ibwarden/ibwarden/ib"
)

// What an audit can tell of a key is told of what stands for it too: that there is
// one, that others have the same, that it is a GUID, or that it can be guessed.
const (
	// guessable is the bound below which a key is guessed, and defaultKey the
	// SM_Key that every manager has that was told of none.
	guessable  = 1 << 32
	defaultKey = 1
	// fewBytes is the number of different bytes below which a key is guessed.
	fewBytes = 4
)

// Conceal puts something else in place of every M_Key and SM_Key, for good. Equal
// keys of this snapshot stay equal, and nobody without the salt can tell which
// they were; the salt has to be random, and to be thrown away.
func (s *Snapshot) Conceal(salt [32]byte) {
	s.Concealed = true
	mac := hmac.New(sha256.New, salt[:])
	for _, n := range s.Fabric.Nodes {
		for i := range n.Ports {
			p := &n.Ports[i]
			p.Key, p.Via, p.Leads = 0, nil, false
			if key := uint64(p.Info.MKey); key != uint64(p.GUID) && key != uint64(n.GUID()) {
				p.Info.MKey = ib.MKey(concealed(mac, key))
			}
			if key := uint64(p.SMInfo.SMKey); key != defaultKey {
				p.SMInfo.SMKey = ib.SMKey(concealed(mac, key))
			}
		}
	}
}

// concealed stands for a key: 0 for 0, and what can be guessed for what can be.
func concealed(mac hash.Hash, key uint64) uint64 {
	if key == 0 {
		return 0
	}
	mac.Reset()
	mac.Write(binary.BigEndian.AppendUint64(nil, key))
	sum := mac.Sum(nil)
	for ; len(sum) > 8; sum = sum[1:] {
		v := binary.BigEndian.Uint64(sum)
		if canBeGuessed(key) {
			v %= guessable
		}
		if v > defaultKey && canBeGuessed(v) == canBeGuessed(key) {
			return v
		}
	}
	return guessable - 1 // once in many times the age of the world
}

func canBeGuessed(key uint64) bool {
	distinct := map[byte]bool{}
	for i := range 8 {
		distinct[byte(key>>(8*i))] = true
	}
	return key < guessable || len(distinct) < fewBytes
}
