package api

import (
	"slices"
	"strings"
)

// sightRow is a request of the matrix of sights. {GUID}, {NODE}, {PORT} (by GUID, LID and
// name), {NAME}, {PKEY}, {PNAME}, {TENANT}, {TOKEN} and {APPROVAL} stand for what is foreign
// to the caller, {OTHER} for the GUID of the next foreign port; {OWN}, {MINE} and {ME} for a
// port, a partition and the tenant of the caller, {REVISION} for some revisions, {PARTY} for
// the parties of his matrix, {FREE} for a number that he may have and has not.
type sightRow struct {
	path, body string
	from       area
}

// sightRows are the requests of every operation of the description. Writes are tried only.
var sightRows = map[string][]sightRow{
	"list-partitions": {{path: "/partitions"}, {path: "/partitions?owner={TENANT}"}, {path: "/partitions?name={PNAME}"}, {path: "/partitions?selector=mark"}, {path: "/partitions?selector=mark%21%3Dnone"}},
	"get-partition":   {{path: "/partitions/{PKEY}"}},
	"create-partition": {
		{path: "/partitions?dry_run=true", body: `{"pkey":"{PKEY}","name":"new"}`, from: ofMembers}, {path: "/partitions?dry_run=true", body: `{"name":"{PNAME}"}`},
		{path: "/partitions?dry_run=true", body: `{"name":"new","owner":"{TENANT}"}`}, {path: "/partitions?dry_run=true", body: `{"name":"new","members":[{"port":"{GUID}","membership":"full"}]}`},
	},
	"put-partition": {
		{path: "/partitions/{PKEY}?dry_run=true", body: `{"name":"new"}`, from: ofMembers},
		{path: "/partitions/{MINE}?dry_run=true", body: `{"name":"new","members":[{"port":"{GUID}","membership":"full"}]}`, from: ofMembers},
	},
	"patch-partition": {
		{path: "/partitions/{PKEY}?dry_run=true", body: `{"sl":1,"labels":{"x":"y"}}`, from: ofMembers},
		{path: "/partitions/{MINE}?dry_run=true", body: `{"members":[{"port":"{GUID}","membership":"full"}]}`, from: ofMembers},
	},
	"delete-partition": {{path: "/partitions/{PKEY}?dry_run=true", from: ofMembers}},
	"list-members":     {{path: "/partitions/{PKEY}/members", from: ofMembers}, {path: "/partitions/{MINE}/members", from: ofMembers}, {path: "/partitions/{MINE}/members?state=waiting", from: ofMembers}},
	"get-member":       {{path: "/partitions/{PKEY}/members/{OWN}", from: ofMembers}, {path: "/partitions/{MINE}/members/{GUID}", from: ofMembers}},
	"add-members": {
		{path: "/partitions/{PKEY}/members?dry_run=true", body: `{"members":[{"port":"{OWN}","membership":"limited"}]}`, from: ofMembers},
		{path: "/partitions/{MINE}/members?dry_run=true", body: `{"members":[{"port":"{GUID}","membership":"limited"},{"port":"{OTHER}","membership":"full"}]}`, from: ofMembers},
	},
	"put-members": {
		{path: "/partitions/{PKEY}/members?dry_run=true", body: `{"members":[{"port":"{OWN}","membership":"limited"}]}`, from: ofMembers},
		{path: "/partitions/{MINE}/members?dry_run=true", body: `{"members":[{"port":"{GUID}","membership":"limited"}]}`, from: ofMembers},
	},
	"put-member": {
		{path: "/partitions/{PKEY}/members/{OWN}?dry_run=true", body: `{"membership":"full"}`, from: ofMembers},
		{path: "/partitions/{MINE}/members/{GUID}?dry_run=true", body: `{"membership":"full"}`, from: ofMembers},
		{path: "/partitions/{PKEY}/members/{GUID}?dry_run=true", body: `{"membership":"full"}`, from: ofMembers},
	},
	"delete-member":             {{path: "/partitions/{PKEY}/members/{OWN}?dry_run=true", from: ofMembers}, {path: "/partitions/{MINE}/members/{GUID}?dry_run=true", from: ofMembers}},
	"delete-members":            {{path: "/partitions/{PKEY}/members?dry_run=true&port={OWN}", from: ofMembers}, {path: "/partitions/{MINE}/members?dry_run=true&port={GUID}", from: ofMembers}},
	"refuse-member":             {{path: "/partitions/{PKEY}/members/{OWN}/refuse?dry_run=true", from: ofMembers}, {path: "/partitions/{MINE}/members/{GUID}/refuse?dry_run=true", from: ofMembers}},
	"create-login":              {{path: "/logins"}},
	"begin-session":             {{path: "/session"}},
	"get-session":               {{path: "/session"}},
	"end-session":               {{path: "/session"}},
	"list-tenants":              {{path: "/tenants"}, {path: "/tenants?selector=mark"}},
	"get-tenant":                {{path: "/tenants/{TENANT}"}},
	"put-tenant":                {{path: "/tenants/{TENANT}?dry_run=true", body: `{}`}},
	"patch-tenant":              {{path: "/tenants/{TENANT}?dry_run=true", body: `{"labels":{"x":"y"}}`}},
	"delete-tenant":             {{path: "/tenants/{TENANT}?dry_run=true"}},
	"list-tokens":               {{path: "/tokens"}, {path: "/tokens?tenant={TENANT}"}},
	"create-token":              {{path: "/tokens?dry_run=true", body: `{"tenant":"{TENANT}"}`}},
	"delete-token":              {{path: "/tokens/{TOKEN}?dry_run=true"}},
	"list-ports":                {{path: "/ports"}, {path: "/ports?owner={TENANT}"}, {path: "/ports?node={NAME}"}, {path: "/ports?found=true"}},
	"get-port":                  {{path: "/ports/{GUID}"}},
	"move-ports":                {{path: "/ports/move?dry_run=true", body: `{"tenant":"{ME}","ports":["{GUID}"]}`}, {path: "/ports/move?dry_run=true", body: `{"tenant":"{TENANT}","ports":["{OWN}"]}`}},
	"offer-ports":               {{path: "/ports/offer?dry_run=true", body: `{"tenant":"{ME}x","ports":["{GUID}"]}`}, {path: "/ports/offer?dry_run=true", body: `{"tenant":"{TENANT}","ports":["{OWN}"]}`}},
	"assign-ports":              {{path: "/ports/assign?dry_run=true", body: `{"tenant":"{ME}","ports":[{"guid":"{GUID}"}]}`}, {path: "/ports/assign?dry_run=true", body: `{"tenant":"{TENANT}","ports":[{"guid":"{OWN}"}]}`}},
	"release-ports":             {{path: "/ports/release?dry_run=true", body: `{"ports":["{GUID}"]}`}},
	"list-approvals":            {{path: "/approvals", from: ofHistory}},
	"approve":                   {{path: "/approvals/{APPROVAL}/approve?dry_run=true", from: ofHistory}, {path: "/approvals/{APPROVAL}/approve?dry_run=true", body: `{"into":[{"pkey":"{PKEY}","membership":"full"}]}`, from: ofHistory}},
	"reject":                    {{path: "/approvals/{APPROVAL}/reject?dry_run=true", from: ofHistory}},
	"list-drains":               {{path: "/drains"}},
	"drain-switch":              {{path: "/drains?dry_run=true", body: `{"switch":"{NODE}"}`}, {path: "/drains?dry_run=true", body: `{"switch":"{NAME}"}`}},
	"undrain-switch":            {{path: "/drains/{NODE}?dry_run=true"}},
	"list-pools":                {{path: "/pools"}},
	"assign-pool":               {{path: "/pools?dry_run=true", body: `{"tenant":"{ME}","first":"{GUID}","last":"{GUID}"}`}},
	"release-pool":              {{path: "/pools/{GUID}?dry_run=true"}},
	"roll-back":                 {{path: "/rollback?dry_run=true", body: `{"to":{REVISION}}`, from: ofHistory}, {path: "/rollback?dry_run=true", body: `{"to":{REVISION},"tenant":"{TENANT}"}`, from: ofHistory}, {path: "/rollback?dry_run=true", body: `{"to":{REVISION},"owners":true}`, from: ofHistory}},
	"list-revisions":            {{path: "/revisions?limit=200", from: ofHistory}, {path: "/revisions?oldest_first=true", from: ofHistory}},
	"get-revision":              {{path: "/revisions/{REVISION}", from: ofHistory}},
	"list-audit-log":            {{path: "/audit-log?limit=200", from: ofAudit}},
	"verify-audit-log":          {{path: "/audit-log/verify"}},
	"export-audit-log":          {{path: "/audit-log/export"}},
	"get-backup":                {{path: "/backup"}},
	"watch-partitions":          {{path: "/watch/partitions?once=true"}, {path: "/watch/partitions?once=true&after={REVISION}"}, {path: "/watch/partitions?once=true&selector=mark%21%3Dnone"}},
	"watch-tenants":             {{path: "/watch/tenants?once=true"}, {path: "/watch/tenants?once=true&selector=mark"}},
	"watch-events":              {{path: "/events?kept=true", from: ofHistory}},
	"get-policy":                {{path: "/policy"}},
	"put-policy":                {{path: "/policy?dry_run=true", body: `{"name":"p.yaml","text":"version: 1\ndefault: limited\n"}`}},
	"get-export":                {{path: "/export"}},
	"list-nodes":                {{path: "/nodes"}, {path: "/nodes?name={NAME}"}, {path: "/nodes?type=switch"}},
	"get-node":                  {{path: "/nodes/{NODE}"}, {path: "/nodes/{OWNNODE}"}},
	"get-node-port":             {{path: "/nodes/{NODE}/ports/1"}, {path: "/nodes/{OWNNODE}/ports/1"}},
	"list-cables":               {{path: "/cables"}},
	"get-map":                   {{path: "/map"}},
	"list-links":                {{path: "/links"}},
	"list-routes":               {{path: "/routes?switch={NODE}"}},
	"list-managers":             {{path: "/managers"}},
	"list-sweeps":               {{path: "/sweeps"}},
	"hand-over":                 {{path: "/managers/handover?dry_run=true", body: `{"to":"{NAME}"}`}},
	"get-snapshot":              {{path: "/snapshot"}},
	"get-proof":                 {{path: "/proof"}},
	"get-certificate":           {{path: "/proof/certificate"}, {path: "/proof/certificate?revision={REVISION}"}},
	"get-certificate-signature": {{path: "/proof/certificate.sig"}, {path: "/proof/certificate.sig?revision={REVISION}"}},
	"list-pairs":                {{path: "/proof/pairs"}, {path: "/proof/pairs?pkey={PKEY}"}},
	"get-matrix":                {{path: "/matrix"}},
	"get-matrix-ports":          {{path: "/matrix/ports?a={ME}&b={TENANT}"}, {path: "/matrix/ports?a={TENANT}&b={ME}"}, {path: "/matrix/ports?a={PARTY}&b={ME}"}, {path: "/matrix/ports?a={PARTY}&b={PARTY}"}},
	"list-findings":             {{path: "/audit"}},
	"list-checks":               {{path: "/audit/checks"}},
	"list-verdicts":             {{path: "/proof/history"}},
	"explain-pair":              {{path: "/why?from={OWN}&to={PORT}"}, {path: "/why?from={PORT}&to={OWN}"}, {path: "/why?from={PORT}&to={OTHER}"}},
	"list-peers":                {{path: "/peers?port={OWN}"}, {path: "/peers?port={PORT}"}},
	"list-counters":             {{path: "/counters"}, {path: "/counters?node={NODE}"}},
	"get-load":                  {{path: "/map/load"}},
	"list-moments":              {{path: "/past"}},
	"get-moment":                {{path: "/past/moment?at=2026-11-29T10:00:00Z"}, {path: "/past/moment?at=2026-11-29T10:00:00Z&with=2026-11-29T10:01:00Z"}},
	"acknowledge-alarm":         {{path: "/alarms/acknowledge?dry_run=true", body: `{"alarm":"0000000000000000"}`}},
	"list-alarms":               {{path: "/alarms"}, {path: "/alarms?audit=true"}},
	"get-status":                {{path: "/status"}},

	"list-multicast-groups": {{path: "/multicast-groups"}},
	"accept-restored-store": {{path: "/store/accept-restored"}},
	"get-description":       {{path: "/openapi.json"}},
}

// ufmRows are the same for UFM's calls, by method and pattern. A write is one that no caller
// may make: it is refused, or changes nothing.
var ufmRows = map[string][]sightRow{
	"GET app/ufm_version":                 {{path: "app/ufm_version"}},
	"GET app/smconf":                      {{path: "app/smconf"}},
	"GET app/tokens":                      {{path: "app/tokens"}},
	"POST app/tokens":                     {}, // makes one of the caller's, and takes nothing from the request
	"DELETE app/tokens/{}":                {{path: "app/tokens/{TOKEN}"}},
	"GET resources/ports":                 {{path: "resources/ports"}, {path: "resources/ports?system={NODE}"}},
	"GET resources/ports/{}":              {{path: "resources/ports/{GUID}_1"}},
	"GET resources/systems":               {{path: "resources/systems?ports=true"}},
	"GET resources/systems/{}":            {{path: "resources/systems/{NODE}"}},
	"GET resources/links":                 {{path: "resources/links"}, {path: "resources/links?system={NODE}"}},
	"GET resources/vports":                {{path: "resources/vports"}, {path: "resources/vports?system={NODE}"}, {path: "resources/vports?port={GUID}_1"}},
	"GET resources/pkeys":                 {{path: "resources/pkeys?guids_data=true&qos_conf=true", from: ofMembers}, {path: "resources/pkeys?pkey_name_prefix={PNAME}"}},
	"POST resources/pkeys":                {{path: "resources/pkeys", body: `{"pkey":"{PKEY}","guids":["{OWN}"]}`}, {path: "resources/pkeys", body: `{"pkey":"{MINE}","guids":["{GUID}"]}`, from: ofMembers}},
	"PUT resources/pkeys":                 {{path: "resources/pkeys", body: `{"pkey":"{PKEY}","guids":["{OWN}"]}`}},
	"POST resources/pkeys/add":            {{path: "resources/pkeys/add", body: `{"pkey":"{PKEY}"}`}},
	"GET resources/pkeys/last_updated":    {{path: "resources/pkeys/last_updated"}},
	"PUT resources/pkeys/qos_conf":        {{path: "resources/pkeys/qos_conf", body: `{"pkey":"{PKEY}","service_level":1}`}},
	"POST resources/pkeys/qos_conf":       {{path: "resources/pkeys/qos_conf", body: `{"pkey":"{PKEY}","service_level":1}`}},
	"POST resources/pkeys/hosts":          {{path: "resources/pkeys/hosts", body: `{"pkey":"{MINE}","hosts_names":"{HOST}","membership":"full"}`}, {path: "resources/pkeys/hosts", body: `{"pkey":"{PKEY}","hosts_names":"{OWNHOST}","membership":"full"}`}},
	"GET resources/pkeys/{}":              {{path: "resources/pkeys/{PKEY}?guids_data=true&qos_conf=true"}, {path: "resources/pkeys/{PKEY}"}, {path: "resources/pkeys/{MINE}?guids_data=true", from: ofMembers}, {path: "resources/pkeys/0x7fff?guids_data=true"}},
	"DELETE resources/pkeys/{}":           {{path: "resources/pkeys/{PKEY}"}},
	"DELETE resources/pkeys/{}/guids/{}":  {{path: "resources/pkeys/{PKEY}/guids/{OWN}"}, {path: "resources/pkeys/{MINE}/guids/{GUID}", from: ofMembers}},
	"DELETE resources/pkeys/{}/hosts/{}":  {{path: "resources/pkeys/{MINE}/hosts/{HOST}"}, {path: "resources/pkeys/{PKEY}/hosts/{HOST}"}},
	"POST actions/add_guids_to_pkey":      {{path: "actions/add_guids_to_pkey", body: `{"pkey":"{PKEY}","guids":["{OWN}"]}`}},
	"POST actions/remove_guids_from_pkey": {{path: "actions/remove_guids_from_pkey", body: `{"pkey":"{PKEY}","guids":["{OWN}"]}`}, {path: "actions/remove_guids_from_pkey", body: `{"pkey":"{MINE}","guids":["{GUID}"]}`, from: ofMembers}},
	"GET actions/get_all_pkeys":           {{path: "actions/get_all_pkeys?guids_data=true", from: ofMembers}},
	"POST actions/get_all_pkeys":          {{path: "actions/get_all_pkeys", from: ofMembers}},
	"GET jobs":                            {{path: "jobs"}},
	"GET jobs/{}":                         {}, // the ID of a job is made again for each
	"DELETE jobs/{}":                      {}, // the same
}

// sightRequest is a request with everything filled in; none is the same about what does not
// exist, and is empty where nothing foreign is in the request.
type sightRequest struct {
	path, body, nonePath, noneBody string
	swap                           *strings.Replacer // makes of the answer about what is foreign that about what is none
	// ports, pkey and tenant are what it is about, as far as it is about such.
	ports  []*lairPort
	pkey   string
	tenant string
}

// sightThing is something foreign, and the like of it that does not exist.
type sightThing struct {
	is, none string
	port     *lairPort
	pkey     string
	tenant   string
}

// things are the foreign things of a kind for a tenant.
func (w *lair) things(tenant, kind string) (list []sightThing) {
	const node, guid = "0x00000000deadbe00", "0x00000000deadbe01"
	for _, p := range w.ports {
		if p.owner == tenant || w.subjects != nil && !slices.Contains(w.subjects, p) {
			continue
		}
		switch kind {
		case "GUID":
			list = append(list, sightThing{p.guid, guid, p, "", ""})
		case "NODE":
			list = append(list, sightThing{p.node, node, p, "", ""})
		case "NAME":
			list = append(list, sightThing{p.port.Node.Description, strings.Replace(p.port.Node.Description, p.name, "wqzzyxjq", 1), p, "", ""})
		case "HOST":
			list = append(list, sightThing{p.name, "wqzzyxjq", p, "", ""})
		case "PORT":
			list = append(list, sightThing{p.guid, guid, p, "", ""}, sightThing{p.lid, "48999", p, "", ""}, sightThing{p.name, "wqzzyxjq", p, "", ""})
		}
	}
	for k, part := range w.parts {
		if part.owner == tenant || w.subjects != nil && w.own[part.owner] != k {
			continue
		}
		switch kind {
		case "PKEY":
			list = append(list, sightThing{k, k[:4] + "ee", nil, k, ""})
		case "PNAME":
			list = append(list, sightThing{part.name, "wqzzyx", nil, k, ""})
		}
	}
	for _, other := range []string{rubin, saphir, smaragd} {
		switch {
		case other == tenant:
		case kind == "TENANT":
			list = append(list, sightThing{other, "wqzzyxjq"[:len(other)], nil, "", other})
		case kind == "TOKEN":
			list = append(list, sightThing{w.token[other], "tok-00000000dead", nil, "", ""})
		case kind == "APPROVAL" && other == smaragd:
			list = append(list, sightThing{w.waiting, "00000000deadbeef"[:len(w.waiting)], nil, "", ""})
		}
	}
	slices.SortFunc(list, func(a, b sightThing) int { return strings.Compare(a.is, b.is) })
	return list
}
