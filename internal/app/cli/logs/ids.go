package logs

// The ids of events that do not come from the manager's engine.
const (
	idRepeated = "repeated"
	idProgress = "progress"
	// AuditHead is that of the head of the audit log.
	AuditHead = "audit-head"
)

// meanings has every event id, and what it means. docs/events.md is made from it: ids are
// stable, since programs and alerts rely on them.
var meanings = map[string]string{
	"phase":             "A phase of a pass began; `quarantine` is info, the others are debug.",
	"found":             "A sweep found so many nodes and links.",
	"fault":             "A place that a sweep could not read or use.",
	"warning":           "Something unusual that does not stop a pass. It is repeated once an hour while it lasts.",
	"refused":           "The policy does not fit, or addresses or routes cannot be assigned; nothing was written.",
	"policy-given":      "The manager was given a policy: `verdict` or `refused` follows.",
	"write-failed":      "A write that was lost, or read back differently.",
	"forgotten":         "Settings that devices accept and do not keep; they are not written again.",
	"fenced":            "From now on nobody behind this switch port is admitted.",
	"unfenced":          "This switch port is no longer fenced.",
	"cables-learned":    "A list of cables was learned and is enforced from now on; `left` are ports that were not learned, and why.",
	"standby":           "Another manager is master; nothing was written.",
	"takeover":          "This manager, which stood by, takes over from the manager at port `master`.",
	"unexpected-master": "A manager that nobody named is master, and this one is new here: it leaves the fabric alone.",
	"master-changed":    "Another subnet manager is master than before: port GUIDs.",
	"master-flapping":   "The master changed so many times `within` nanoseconds; told once until it has not changed for 10 minutes.",
	"no-master":         "For 5 s no subnet manager has been master; `last` was before, by its port GUID.",
	"one-master":        "One subnet manager alone is master again, after `no-master` or `several-masters`.",
	"several-masters":   "For 3 s more than one subnet manager has been master, those that do not count among them; `masters` are port GUIDs, 8 at most.",
	"rogue-manager":     "A subnet manager that is not trusted, or somebody who gives orders like one.",
	"foreign-change":    "A table or setting that somebody else changed; it is corrected. `port` is `{name,node_guid,num,lid}`.",
	"multicast":         "The multicast tables follow the groups; a warning if writes failed or the verdict does not hold.",
	"verdict":           "A pass ended with this verdict.",
	"link-down":         "Links went down: `links[{a,b}]` with ends `{name,node_guid,port}`; `gone[{name,node_guid}]` are the devices that went with them.",
	"link-up":           "Links came up, and `new` devices with them.",
	"link-changed":      "Links were looked at again and lead where they led; `reason` is that of the first.",
	"link-flapping":     "A link goes up and down too often; it is left down for a while.",
	"sweep":             "The subnet is swept again: all of it, or what is behind so many links.",
	"changed":           "A port or device reads differently, and the policy is computed again.",
	"too-many-traps":    "A port sends more traps than are processed.",
	"m-key-tried":       "Somebody sent a request with a wrong M_Key (from a trap).",
	"trap-disbelieved":  "A trap in the name of another port; it is ignored.",
	"manager":           "SMInfo is answered from now on.",
	"m-keys-released":   "Ports gave up their M_Keys: the manager at `port_guid` takes over and does not know them.",
	"m-keys":            "Ports were given M_Keys; a warning if some were not.",
	"trap-64":           "A GID is in service (see Traps in [logs.md](logs.md)).",
	"trap-128":          "The state of a link changed.",
	"trap-129":          "A port exceeded its threshold of local link integrity errors.",
	"trap-130":          "A port exceeded its threshold of buffer overruns.",
	"trap-131":          "A port's flow control watchdog expired.",
	"trap-144":          "Capabilities, or the description, of a device changed.",
	"trap-145":          "The system image GUID of a device changed.",
	"trap-256":          "A request with a wrong M_Key was refused.",
	"trap-257":          "A packet with a wrong P_Key was refused by an end port.",
	"trap-258":          "A packet with a wrong Q_Key was refused.",
	"trap-259":          "A packet with a wrong P_Key was refused by a switch port.",
	idRepeated:          "What was logged before came `times` more within `within` nanoseconds; `of` is its id, the level is its level.",
	AuditHead:           "`head` is that of the audit log, SEQUENCE:HASH: at the start, at most once an hour when it has changed, and at the end. It is for `ibwarden history verify --head`.",
	idProgress:          "A phase takes long; info in the first pass.",
}
