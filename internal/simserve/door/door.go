// Package door says which local users may use a simulated fabric that is served. Its
// sockets are in Linux's abstract namespace, where files' permissions do not apply: every
// door asks the kernel who is at the other end, and this package whether he may come in.
package door

import (
	"fmt"
	"os"
)

// Users are the users that a served fabric is open to: root and the user that runs the
// simulator, as with the files of /dev/infiniband.
type Users struct {
	// Any lets every user of this machine in.
	Any bool
}

// Unknown is the user ID of a sender that the kernel did not name.
const Unknown = -1

// Admit returns an error for a user who may not use the fabric. uid is as the kernel gives
// it; Unknown is let in only where everybody is.
func (u Users) Admit(uid int) error {
	switch {
	case u.Any, uid == 0, uid == os.Geteuid():
		return nil
	case uid == Unknown:
		return fmt.Errorf("a user whom the kernel does not name may not use this simulator: want root or user %d", os.Geteuid())
	}
	return fmt.Errorf("user %d may not use this simulator: want root or user %d; ibwarden sim --any-user lets everybody in", uid, os.Geteuid())
}
