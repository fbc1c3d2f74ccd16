package umadfs

import (
	"net"
	"time"
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

// maxGreeting bounds a message of the handshake, in octets.
const maxGreeting = 4096

// greeting asks for the devices of a node; the connections to the kernel come
// with it. The answer is an empty Error, or why not.
type greeting struct {
	Version int    `json:"version"`
	Node    string `json:"node"` // empty for the first CA
	Error   string `json:"error,omitempty"`
}

const greetingVersion = 1

// address is where the simulator of a name hands out devices: an abstract
// socket, which leaves nothing behind.
func address(name string) *net.UnixAddr {
	return &net.UnixAddr{Name: "@ibwarden:devices:" + name, Net: "unixpacket"}
}
