package umad

import "strconv"

// Errno is an error number of Linux; 0 is success.
type Errno uint16

// The error numbers that these devices answer.
const (
	OK              Errno = 0
	EPERM           Errno = 1
	EIO             Errno = 5
	ENXIO           Errno = 6
	EAGAIN          Errno = 11
	ENOMEM          Errno = 12
	EFAULT          Errno = 14
	ENODEV          Errno = 19
	EINVAL          Errno = 22
	ENOTTY          Errno = 25
	ENOSPC          Errno = 28
	EPIPE           Errno = 32
	EPROTONOSUPPORT Errno = 93
	ETIMEDOUT       Errno = 110
)

var errnoNames = map[Errno]string{
	OK: "OK", EPERM: "EPERM", EIO: "EIO", ENXIO: "ENXIO", EAGAIN: "EAGAIN", ENOMEM: "ENOMEM", EFAULT: "EFAULT",
	ENODEV: "ENODEV", EINVAL: "EINVAL", ENOTTY: "ENOTTY", ENOSPC: "ENOSPC", EPIPE: "EPIPE",
	EPROTONOSUPPORT: "EPROTONOSUPPORT", ETIMEDOUT: "ETIMEDOUT",
}

// Error is the name of the number.
func (e Errno) Error() string {
	if name, ok := errnoNames[e]; ok {
		return name
	}
	return "errno " + strconv.Itoa(int(e))
}
