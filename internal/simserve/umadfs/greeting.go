package umadfs

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// The places of the device files and of what sysfs says about them.
const (
	deviceDir = "/dev/infiniband"
	sysDir    = "/sys/class/infiniband"
	sysMADDir = "/sys/class/infiniband_mad"
)

// Mounts are the mounts of a command's namespace, in the order in which their
// connections are handed over: of the devices, of /sys/class/infiniband, and of
// /sys/class/infiniband_mad.
var Mounts = []string{deviceDir, sysDir, sysMADDir}

// greetingTime is how long a simulator may take to serve a new namespace.
const greetingTime = 10 * time.Second

// maxGreeting bounds a message of the handshake, in bytes.
const maxGreeting = 4096

// greeting asks for the devices of a node; the connections to the kernel come
// with it. The answer is an empty Error, or why not.
type greeting struct {
	Version int    `json:"version"`
	Node    string `json:"node"` // empty for the first CA
	Error   string `json:"error,omitempty"`
	// At is where the command is then, of the answer.
	At Place `json:"at"`
}

const greetingVersion = 2

// Place is a host of a fabric that somebody serves.
type Place struct {
	UID    int         `json:"-"`      // of who serves it, as the kernel knows
	Fabric uint64      `json:"fabric"` // a sum of its nodes: that of another fabric is another
	Node   ib.NodeGUID `json:"node"`
}

// fabricSum is the sum of the nodes of a topology, by GUID and name, in whatever order they
// stand. Cables do not count: a fabric is the same one when they were changed.
func fabricSum(l *topology.Netlist) uint64 {
	var all []string
	for _, n := range l.Nodes {
		all = append(all, fmt.Sprintf("%016x %q\n", uint64(n.GUID), n.ID))
	}
	slices.Sort(all)
	sum := sha256.Sum256([]byte(strings.Join(all, "")))
	return binary.BigEndian.Uint64(sum[:])
}

// address is where the simulator of a name hands out devices: an abstract
// socket, which leaves nothing behind.
func address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: "@ibwarden:devices:" + name, Net: "unixpacket"}
}
