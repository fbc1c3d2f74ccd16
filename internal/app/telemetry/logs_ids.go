package telemetry

import (
	"slices"

	"github.com/ibwarden/ibwarden/internal/api/listen"
)

// The ids of events that do not come from the manager's engine.
const (
	idRepeated = "repeated"
	idProgress = "progress"
	// AuditHead is that of the head of the audit log.
	AuditHead = "audit-head"
	// ReloadFailed is that of a file with a fault, which was to be read again.
	ReloadFailed = "reload-failed"
)

// EngineIDs are the ids of the events of the manager's engine, ordered.
func EngineIDs() (ids []string) {
	others := []string{idRepeated, idProgress, AuditHead, listen.SessionBegun, listen.LoginRefused, listen.CallerUnknown, listen.SessionRevoked, listen.ProviderAway, listen.ProviderBack}
	for id := range meanings {
		if !slices.Contains(others, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// meanings has every event id, and what it means. docs/logs.md is made from it: ids are
// stable, since programs and alerts rely on them.
var meanings = map[string]string{
	"packets-dropped":      "Since the last reading of its counters a switch port dropped `packets` because of partition enforcement or a raw filter: at the exit (`counter` PortXmitConstraintErrors, which no trap reports) or on arrival (PortRcvConstraintErrors); if `stopped`, perhaps more. Needs what [metrics.md](metrics.md#the-fabric) says. `port` as in `foreign-change`.",
	"phase":                "A phase of a pass began; `quarantine` is info, the others are debug.",
	"found":                "A sweep ended; it found this many nodes and links.",
	"fault":                "A sweep could not read or use this place.",
	"warning":              "Something unusual that does not stop a pass; repeated once an hour while it lasts.",
	"refused":              "The policy does not fit, or addresses or routes cannot be assigned; nothing was written.",
	"routing":              "What the routing engine saw of the fabric, at the start and when that changes.",
	"policy-given":         "The manager was given a policy: `verdict` or `refused` follows.",
	"write-failed":         "A write was lost, or the value read back was different.",
	"forgotten":            "Devices accept these settings but do not keep them; they are not written again.",
	"fenced":               "From now on nobody behind this switch port is admitted.",
	"unfenced":             "This switch port is no longer fenced.",
	"cables-learned":       "A list of cables was learned and is enforced from now on; `left`: ports that were not learned, and why.",
	"standby":              "Another manager is master; nothing was written.",
	"takeover":             "This standby takes over from the manager at port `master`.",
	"other-policy-guarded": "This manager took over from one with another policy: until its policy is read again no port is given what the tables did not hold.",
	"other-policy":         "Managers that share the secret have had another policy for 10 s; `managers`: port GUIDs, 8 at most.",
	"same-policy":          "After `other-policy`: no manager that answers has another policy any more.",
	"unexpected-master":    "An untrusted manager is master; this one, which has not managed the fabric before, leaves it alone.",
	"locked-out":           "Devices do not accept the M_Keys known here; those that other managers stored are read again, and `refused` follows if they do not help.",
	"slept":                "This master did not run `for` so many nanoseconds: it writes nothing until it has asked the other managers.",
	"may-not-write":        "This master has had no right to write to the fabric for 3 s: the store did not give it, and the managers at the ports `silent` did not say that they stand by ([managers.md](managers.md#who-may-write-to-the-fabric)).",
	"may-write":            "After `may-not-write`: this master may write again.",
	"managers-asked":       "This master has asked the others for their state; `alone` if no other is master.",
	"master-changed":       "The master changed; `from` and `to` are port GUIDs.",
	"master-flapping":      "The master changed `changes` times `within` nanoseconds; not logged again until 10 minutes without a change.",
	"no-master":            "No subnet manager has been master for 5 s; `last` is the previous master's port GUID.",
	"one-master":           "After `no-master` or `several-masters`: exactly one subnet manager is master.",
	"several-masters":      "Several subnet managers, untrusted ones included, have been master for 3 s; `masters`: port GUIDs, 8 at most.",
	"rogue-manager":        "An untrusted subnet manager, or a port that sends requests as if it were one.",
	"counter-stopped":      "Violation counters of PortInfo (`counters`) had stopped at 65535 and are set back to 0; metrics go on rising. `port` as in `foreign-change`.",
	"foreign-change":       "Somebody else changed a table or setting; it is corrected. `port` is `{name,node_guid,num,lid}`.",
	"multicast":            "The multicast tables were updated for the groups; a warning if writes failed or isolation is not proved.",
	"verdict":              "A pass ended with this verdict.",
	"link-down":            "Links went down: `links[{a,b}]` with ends `{name,node_guid,port}`; `gone[{name,node_guid}]`: devices no longer reached.",
	"link-up":              "Links came up; `new` are the devices found behind them.",
	"link-changed":         "Links were checked again and lead to the same ports as before; `reason` is that of the first.",
	"link-flapping":        "A link goes up and down too often; it is left down for a while.",
	"rerouted":             "Forwarding tables lead around links between switches that went down: `writes` blocks were written.",
	"sweep":                "The subnet is swept again: all of it, or the part behind `links` links.",
	"changed":              "A port or device changed, and the policy is computed again.",
	"too-many-traps":       "A port sends traps faster than they are processed.",
	"m-key-tried":          "A trap reports a request with a wrong M_Key.",
	"trap-disbelieved":     "A trap that claims to come from another port; it is ignored.",
	"manager":              "SMInfo is answered from now on.",
	"m-keys-released":      "M_Keys of ports were cleared, since the manager at `port_guid` takes over and does not know them.",
	"m-keys":               "M_Keys were set; a warning if some ports did not take theirs.",
	"trap-64":              "A GID is in service (see [Traps](#traps)).",
	"trap-128":             "The state of a link changed.",
	"trap-129":             "A port exceeded its threshold of local link integrity errors.",
	"trap-130":             "A port exceeded its threshold of buffer overruns.",
	"trap-131":             "A port's flow control watchdog expired.",
	"trap-144":             "The capabilities or the description of a device changed.",
	"trap-145":             "The system image GUID of a device changed.",
	"trap-256":             "A request with a wrong M_Key was refused.",
	"trap-257":             "A packet with a wrong P_Key was refused by an end port.",
	"trap-258":             "A packet with a wrong Q_Key was refused.",
	"trap-259":             "A packet with a wrong P_Key was refused by a switch port.",
	idRepeated:             "The event `of` occurred `times` more times `within` nanoseconds; the level is that event's.",
	AuditHead:              "The head of the audit log, SEQUENCE:HASH ([api.md](api.md#the-audit-log-and-its-head)).",
	listen.SessionBegun:    "Somebody logged in to the console: `caller`, the ID of a token or uid N, `by` token, certificate, peer of the Unix socket, one-time code, sso (OpenID provider), or password (UFM's `/dologin`), `from` an address.",
	listen.SessionRevoked:  "The OpenID provider no longer confirms the caller (`reason`): the session has ended.",
	listen.ProviderAway:    "The OpenID provider does not answer: nobody can log in with it ([api.md](api.md#single-sign-on)).",
	listen.ProviderBack:    "After `openid-provider-away`: the OpenID provider answers.",
	listen.CallerUnknown:   "Requests without a valid token, certificate or session come from an address; logged once a minute for each, with the `reason` of the first. Metrics count all.",
	listen.LoginRefused:    "A login to the console, or by UFM's `/dologin`, was refused; at most 10 a minute are logged from one address.",
	ReloadFailed:           "A file that SIGHUP had read again has a fault; the previous configuration, list of cables, forwarding tables, racks or policy (`what`) stays in force.",
	idProgress:             "A phase takes a long time; info in the first pass.",
}
