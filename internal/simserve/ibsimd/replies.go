package ibsimd

import (
	"slices"

	"golang.org/x/sys/unix"
)

// replies sends the answers to control requests. All leave by one socket, and unread
// answers fill that socket's buffer until the client reads them or dies: a client that
// does not read must not keep the others from their answers. A client that waits for each
// answer never has more than one unread.
type replies struct {
	fd   int
	room int // bytes of the buffer

	// shunned are clients that were expelled for what they left unread, which
	// is lost bytes. All is forgiven when everything has been read.
	shunned []DgramAddress
	lost    int
}

const (
	// maxShunned is how many are remembered.
	maxShunned = 64
	// fewReplies are no reason to expel a client.
	fewReplies = 32
	// The parts of the buffer that may be unread, apart from what is lost: by clients
	// without a slot, and in total before a client is expelled.
	refusedShare, scarceShare = 8, 4
)

func newReplies(fd int) replies {
	room, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		room = DgramBuffer
	}
	return replies{fd: fd, room: room}
}

// unread is how many bytes of the buffer are taken; when none are, all counts
// start again.
func (r *replies) unread(clients []*client) int {
	bytes, err := Unread(r.fd)
	r.lost = min(r.lost, bytes)
	if err != nil || bytes == 0 {
		r.shunned = r.shunned[:0]
		startAgain(clients)
		return 0
	}
	return bytes
}

func startAgain(clients []*client) {
	for _, c := range clients {
		if c != nil {
			c.replies = 0
		}
	}
}

// isShunned reports whether nobody should listen to a sender.
func (r *replies) isShunned(from *DgramAddress) bool { return slices.Contains(r.shunned, *from) }

// refuse answers a client without a slot, as long as those do not leave too much unread.
func (r *replies) refuse(answer *control, to *DgramAddress, unread int) {
	if unread <= r.room/refusedShare {
		SendTo(r.fd, answer[:], to)
	}
}

// answer answers a client. When the buffer gets scarce it names the client that
// was answered most often since everything had been read: it is to go.
func (r *replies) answer(answer *control, c *client, clients []*client, unread int) (expelled *client) {
	c.replies++
	if unread > r.lost+r.room/scarceShare {
		most := slices.MaxFunc(clients, func(a, b *client) int { return replyCount(a) - replyCount(b) })
		if replyCount(most) > fewReplies && len(r.shunned) < maxShunned {
			r.shunned = append(r.shunned, most.control)
			r.lost = unread
			startAgain(clients)
			expelled = most
		}
	}
	if expelled != c {
		SendTo(r.fd, answer[:], &c.control)
	}
	return expelled
}

func replyCount(c *client) int {
	if c == nil {
		return 0
	}
	return c.replies
}
