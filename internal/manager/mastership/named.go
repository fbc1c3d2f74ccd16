package mastership

import (
	"slices"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
)

// lists reports whether the manager at a port is in ElectionConfig.Trusted.
func (e *Election) lists(guid ib.PortGUID) bool { return slices.Contains(e.config.Trusted, guid) }

// Counts reports whether another manager has a part in the election, by what it
// says and where it said it.
func (e *Election) Counts(r Remote) bool { return e.counts(&r) }

func (e *Election) counts(r *Remote) bool {
	guid := r.Info.GUID
	switch {
	case guid == e.config.GUID:
		return false
	case !e.config.Named:
		return e.config.Trusted == nil || e.lists(guid)
	}
	return guid != 0 && guid == r.Address.Port && (e.lists(guid) || e.isOurs(r))
}

// Proves reports whether what a manager says shows that it shares a secret with
// this one.
func (e *Election) Proves(r Remote) bool { return e.isOurs(&r) }

// isOurs reports whether a manager showed the key of one that shares a secret
// with this one.
func (e *Election) isOurs(r *Remote) bool {
	return e.config.Key != nil && r.Info.GUID == r.Address.Port && r.Info.SMKey != 0 &&
		r.Info.SMKey == e.config.Key(r.Info.GUID, e.config.GUID)
}

// keyFor is the SM_Key that the manager at a port is shown. That of ElectionConfig is
// for those that are listed: one that does not know it could not take it for
// anything. The key of a pair tells its reader nothing that it could show to
// anybody else.
func (e *Election) keyFor(to ib.PortGUID) ib.SMKey {
	switch {
	case !e.config.Named:
		return e.config.SMKey
	case e.config.SMKey != 0 && e.lists(to):
		return e.config.SMKey
	case e.config.Key != nil:
		return e.config.Key(e.config.GUID, to)
	}
	return 0
}

// shownTo is the SM_Key in the answer to a manager that asks or orders. Where only named
// managers count, the port decides: a manager that only compares keys asks without
// identifying itself.
func (e *Election) shownTo(asker *Remote) ib.SMKey {
	switch {
	case !e.config.Named:
		if e.config.ShowKey || e.proven(&asker.Info) && e.counts(asker) {
			return e.config.SMKey
		}
	case e.isOurs(asker):
		return e.config.Key(e.config.GUID, asker.Info.GUID)
	case e.lists(asker.Address.Port) && (e.config.ShowKey || e.proven(&asker.Info) && e.counts(asker)):
		return e.config.SMKey
	}
	return 0
}

// proven reports whether an asker showed that it is a master that knows the
// key.
func (e *Election) proven(asker *smp.SMInfo) bool {
	return asker.SMState == smp.SMMaster && asker.SMKey == e.config.SMKey
}

// mayOrder reports whether control packets of a manager count.
func (e *Election) mayOrder(sender *Remote) bool {
	return e.counts(sender) &&
		(e.config.SMKey == 0 || sender.Info.SMKey == e.config.SMKey || e.config.Named && e.isOurs(sender))
}

// isWatched reports whether a manager is the one that is polled. Where only
// managers that are named count, nobody else gives orders, and nobody else hands
// over.
func (e *Election) isWatched(guid ib.PortGUID) bool {
	return !e.config.Named || e.watch.on && e.watch.remote.Info.GUID == guid
}
