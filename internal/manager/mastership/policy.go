package mastership

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/mad"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/policy"
	"github.com/ibwarden/ibwarden/internal/protocol/transact"
)

// Vouches makes what managers that share a secret tell each other of the policy in force.
type Vouches interface {
	// PolicySum is what is told of a policy with this digest.
	PolicySum(digest [sha256.Size]byte) [16]byte
	// Vouch is the proof that the manager at port from answered the one at port to with
	// this sum, when that asked with this nonce.
	Vouch(from, to ib.PortGUID, nonce, sum [16]byte) [24]byte
}

// policyModifier is the attribute modifier of Get(SMInfo) that asks for the policy in force,
// in the encoding of sum and of policy.Digest: it is none of the control packets, and to a
// manager that does not know it, or knows another encoding, the request is an ordinary one.
// Only who has shown the key of the pair is asked. With another encoding it is another one:
// 0x49425750 was the first.
const policyModifier uint32 = 0x49425751

// The data of such a request and its answer, behind SMInfo, in bytes.
const (
	offNonce = 24 // of the request, 16 bytes
	offSum   = 24 // of the answer, 16 bytes
	offProof = 40 // of the answer, 24 bytes
)

const (
	// policyEvery is the time between two questions to a partner about its policy, and
	// policyAgain the same while it is another than here.
	policyEvery = 5 * time.Second
	policyAgain = time.Second
)

// policies is what is known of the policies of partners.
type policies struct {
	asked uint64        // questions so far
	open  int           // of them
	next  time.Duration // when partners are asked again
	// digest is that of the policy of here, as it was when it was worked out.
	digest [sha256.Size]byte
	of     Rules
}

// Rules are a policy with what else tables are made from.
type Rules struct {
	// Policy is the one in force, or the next one; nil for none.
	Policy *policy.Policy
	// Numbers are those that partitions were given before.
	Numbers map[string]ib.PKeyBase
	Besides Besides
}

// Besides is what tables are made from that is not of the policy.
type Besides struct {
	Profile, Routing string // their names
	LMC              uint8
	GIDPrefix        uint64
}

// sum is a digest of a policy's digest with what is besides it: the length of each name in one
// byte and the name, the LMC in one byte, and the GID prefix in eight, most significant first.
func (b *Besides) sum(of [sha256.Size]byte) [sha256.Size]byte {
	data := of[:]
	for _, name := range []string{b.Profile, b.Routing} {
		data = append(append(data, byte(len(name))), name...)
	}
	return sha256.Sum256(binary.BigEndian.AppendUint64(append(data, b.LMC), b.GIDPrefix))
}

// policyDigest tells the policy of here from any other; false where there is none.
func (x *Peers) policyDigest() ([sha256.Size]byte, bool) {
	s, now := &x.policies, x.host.Rules()
	if now.Policy == nil || now.Policy == s.of.Policy && maps.Equal(now.Numbers, s.of.Numbers) {
		return s.digest, now.Policy != nil
	}
	numbers, err := policy.Allocate(now.Policy, now.Numbers)
	if err != nil {
		return [sha256.Size]byte{}, false
	}
	of := now.Policy.Digest(numbers)
	s.of, s.digest = now, now.Besides.sum(of)
	return s.digest, true
}

// nonce is another one each time, and a secret as the seed is.
func (x *Peers) nonce() [16]byte {
	x.policies.asked++
	b := append([]byte("policy"), x.config.Seed[:]...)
	sum := sha256.Sum256(binary.BigEndian.AppendUint64(b, x.policies.asked))
	return [16]byte(sum[:])
}

// answerPolicy adds to the answer to a request what the policy in force is, if it asks for
// that and its sender shares the secret.
func (x *Peers) answerPolicy(p *mad.SMP, from Address, answer *mad.SMP) {
	var asker smp.SMInfo
	if x.config.Vouches == nil || p.Method != mad.MethodGet || p.AttributeModifier != policyModifier || from.Port == 0 ||
		asker.UnmarshalBinary(p.Data[:]) != nil || !x.election.Proves(Remote{Info: asker, Address: from}) {
		return
	}
	digest, known := x.policyDigest()
	if !known {
		return
	}
	nonce, sum := [16]byte(p.Data[offNonce:]), x.config.Vouches.PolicySum(digest)
	proof := x.config.Vouches.Vouch(x.election.Info().GUID, from.Port, nonce, sum)
	copy(answer.Data[offSum:], sum[:])
	copy(answer.Data[offProof:], proof[:])
}

// askPolicies asks partners for their policy when it is time: a standby its master, and a
// master all that share its secret.
func (x *Peers) askPolicies() {
	if x.config.Vouches == nil || x.policies.open > 0 || x.clock < x.policies.next {
		return
	}
	var partners []Remote
	if x.IsMaster() {
		partners = x.round.here
	} else if r, watched := x.election.Watched(); watched {
		partners = []Remote{r}
	}
	wait := policyEvery
	for _, r := range partners {
		if x.election.Proves(r) {
			x.askPolicy(r.Address, func() {})
			if x.PolicyOf(r.Address.Port) == observed.PolicyOther {
				wait = policyAgain
			}
		}
	}
	x.policies.next = x.clock + wait
}

// askPolicyToo asks a manager that has answered AskAll for its policy, if it shares the
// secret.
func (x *Peers) askPolicyToo(r Remote, err error) {
	if x.config.Vouches != nil && err == nil && x.election.Proves(r) {
		x.asking++
		x.askPolicy(r.Address, func() { x.asking-- })
	}
}

// askPolicy asks a partner for its policy, with a nonce of this question alone: an answer
// to an earlier one, or one that was made for somebody else, proves nothing.
func (x *Peers) askPolicy(to Address, then func()) {
	own := x.election.InfoFor(to.Port)
	r := transact.Request{Path: to.Path, LID: to.LID, Method: mad.MethodGet, Attribute: smp.AttrSMInfo, Modifier: policyModifier}
	if own.Encode(&r.Data) != nil {
		return
	}
	nonce := x.nonce()
	copy(r.Data[offNonce:], nonce[:])
	x.policies.open++
	x.talk.Do(r, func(reply transact.Reply) {
		x.policies.open--
		if reply.SMP != nil {
			x.heardPolicy(to.Port, own.GUID, nonce, reply.SMP)
		}
		then()
	})
}

// heardPolicy enters the answer of a partner. One that does not prove what it says, as an
// older version that knows no such question, has told nothing. Who is silent is remembered
// by what he said last, since that is what counts when he is gone; so is one whose host
// answers in his place, which says that no manager is there or does not have the key.
func (x *Peers) heardPolicy(from, to ib.PortGUID, nonce [16]byte, answer *mad.SMP) {
	v := x.voiceOf(from)
	var info smp.SMInfo
	if v == nil || answer.Status != mad.StatusOK || info.UnmarshalBinary(answer.Data[:]) != nil ||
		!x.election.Proves(Remote{Info: info, Address: Address{Port: from}}) {
		return
	}
	v.policy = [16]byte(answer.Data[offSum:])
	v.toldPolicy = [24]byte(answer.Data[offProof:]) == x.config.Vouches.Vouch(from, to, nonce, v.policy)
}

// voiceOf is what the manager behind the port with a GUID said last; nil for nothing. Of two
// ports with one GUID it is the one that has shown that it shares the secret, so that a twin
// cannot have what the genuine one said forgotten, and then the one that was heard last.
func (x *Peers) voiceOf(guid ib.PortGUID) (last *voice) {
	if guid == 0 {
		return nil
	}
	for _, at := range slices.SortedFunc(maps.Keys(x.voices), observed.Place.Compare) {
		v := x.voices[at]
		if v.guid == guid && (last == nil || v.proves && !last.proves || v.proves == last.proves && v.at > last.at) {
			last = v
		}
	}
	return last
}

// PolicyOf reports whether a manager has the policy that is in force here, by what it has
// proved last.
func (x *Peers) PolicyOf(guid ib.PortGUID) observed.PolicyOf {
	v := x.voiceOf(guid)
	if v == nil {
		return observed.PolicyUnknown
	}
	return x.compare(v)
}

func (x *Peers) compare(v *voice) observed.PolicyOf {
	if x.config.Vouches == nil || !v.toldPolicy {
		return observed.PolicyUnknown
	}
	digest, known := x.policyDigest()
	switch {
	case !known:
		return observed.PolicyUnknown
	case x.config.Vouches.PolicySum(digest) == v.policy:
		return observed.PolicySame
	}
	return observed.PolicyOther
}

// policiesDue is when askPolicies has something to do.
func (x *Peers) policiesDue() (time.Duration, bool) {
	if x.config.Vouches == nil || x.election == nil || x.policies.open > 0 {
		return 0, false
	}
	_, watched := x.election.Watched()
	return x.policies.next, watched || x.IsMaster() && x.round.partners > 0
}
