package api

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
)

// callers are the kinds of callers, in the order of the columns of the matrix.
var callers = []string{"nobody", "uid:65534", "reader", "red", "blue", "provider", "uid:4321", ""}

// matrix says what each kind of caller is answered, for every operation. A dash is an
// operation that is tried elsewhere. Of red is partition 0x0100 with its first port.
//
// nobody: no token and no peer; uid:65534: another user over the socket; reader: a token
// of red that may only read; provider: a token; uid:4321 and "": the owner of the
// service and root, over the socket.
var matrix = map[string]struct {
	path, body string
	want       string // statuses, one for each caller
}{
	//                                                                                      none other read red blue prov own root
	"list-partitions":           {"/partitions", "", "401 401 200 200 200 200 200 200"},
	"get-partition":             {"/partitions/0x0100", "", "401 401 200 200 404 200 200 200"},
	"create-partition":          {"/partitions", `{"name":"NEW"}`, "401 401 403 201 201 201 201 201"},
	"put-partition":             {"/partitions/0x0100", `{"name":"one"}`, "401 401 428 428 403 428 428 428"},
	"patch-partition":           {"/partitions/0x0100?dry_run=true", `{"sl":1}`, "401 401 403 200 404 200 200 200"},
	"delete-partition":          {"/partitions/0x0111?dry_run=true", "", "401 401 403 200 404 200 200 200"},
	"list-members":              {"/partitions/0x0100/members", "", "401 401 200 200 404 200 200 200"},
	"get-member":                {"/partitions/0x0100/members/HOST", "", "401 401 200 200 404 200 200 200"},
	"add-members":               {"/partitions/0x0100/members", `{"members":[{"port":"HOST","membership":"full"}]}`, "401 401 403 200 404 200 200 200"},
	"put-members":               {"/partitions/0x0100/members", `{"members":[]}`, "401 401 428 428 404 428 428 428"},
	"put-member":                {"/partitions/0x0100/members/HOST", `{"membership":"full"}`, "401 401 403 200 404 200 200 200"},
	"delete-member":             {"/partitions/0x0100/members/HOST?dry_run=true", "", "401 401 403 200 404 200 200 200"},
	"delete-members":            {"/partitions/0x0100/members?port=HOST&dry_run=true", "", "401 401 403 200 404 200 200 200"},
	"create-login":              {"/logins", "", "401 401 201 201 201 201 201 201"},
	"begin-session":             {"/session", "", "401 401 201 201 201 201 201 201"},
	"get-session":               {"/session", "", "401 401 200 200 200 200 200 200"},
	"end-session":               {"/session", "", "401 401 404 404 404 404 404 404"},
	"list-tenants":              {"/tenants", "", "401 401 200 200 200 200 200 200"},
	"get-tenant":                {"/tenants/red", "", "401 401 200 200 404 200 200 200"},
	"put-tenant":                {"/tenants/NEW", `{}`, "401 401 403 403 403 201 201 201"},
	"patch-tenant":              {"/tenants/red?dry_run=true", `{"quota":{"partitions":3}}`, "401 401 403 403 403 200 200 200"},
	"delete-tenant":             {"/tenants/none", "", "401 401 403 403 403 404 404 404"},
	"list-tokens":               {"/tokens", "", "401 401 200 200 200 200 200 200"},
	"create-token":              {"/tokens?dry_run=true", `{}`, "401 401 403 201 201 201 201 201"},
	"delete-token":              {"/tokens/tok-000000000000", "", "401 401 403 404 404 404 404 404"},
	"list-ports":                {"/ports", "", "401 401 200 200 200 200 200 200"},
	"get-port":                  {"/ports/HOST", "", "401 401 200 200 404 200 200 200"},
	"move-ports":                {"/ports/move?dry_run=true", `{"tenant":"red","ports":["FREE"]}`, "401 401 403 403 403 200 200 200"},
	"offer-ports":               {"/ports/offer?dry_run=true", `{"tenant":"none","ports":["HOST"]}`, "401 401 403 200 404 404 404 404"},
	"assign-ports":              {"/ports/assign?dry_run=true", `{"tenant":"red","ports":[{"guid":"FREE"}]}`, "401 401 403 403 403 200 200 200"},
	"release-ports":             {"/ports/release?dry_run=true", `{"ports":["HOST"]}`, "401 401 403 403 403 200 200 200"},
	"refuse-member":             {"/partitions/0x0100/members/HOST/refuse", "", "401 401 403 404 404 404 404 404"},
	"list-approvals":            {"/approvals", "", "401 401 200 200 200 200 200 200"},
	"approve":                   {"/approvals/a99/approve", "", "401 401 403 404 404 404 404 404"},
	"reject":                    {"/approvals/a99/reject", "", "401 401 403 404 404 404 404 404"},
	"list-drains":               {"/drains", "", "401 401 403 403 403 200 200 200"},
	"drain-switch":              {"/drains?dry_run=true", `{"switch":"SWITCH"}`, "401 401 403 403 403 200 200 200"},
	"undrain-switch":            {"/drains/0x0000000000200000", "", "401 401 403 403 403 404 404 404"},
	"list-pools":                {"/pools", "", "401 401 200 200 200 200 200 200"},
	"assign-pool":               {"/pools?dry_run=true", `{"tenant":"red","first":"0x0000000000f00000","last":"0x0000000000f0ffff"}`, "401 401 403 403 403 200 200 200"},
	"release-pool":              {"/pools/0x0000000000f00000", "", "401 401 403 403 403 404 404 404"},
	"roll-back":                 {"/rollback?dry_run=true", `{"to":1}`, "401 401 403 200 200 200 200 200"},
	"list-revisions":            {"/revisions", "", "401 401 200 200 200 200 200 200"},
	"get-revision":              {"/revisions/1", "", "401 401 200 200 200 200 200 200"},
	"list-audit-log":            {"/audit-log", "", "401 401 200 200 200 200 200 200"},
	"verify-audit-log":          {"/audit-log/verify", "", "401 401 403 403 403 200 200 200"},
	"export-audit-log":          {"/audit-log/export", "", "401 401 403 403 403 200 200 200"},
	"accept-restored-store":     {"/store/accept-restored", "", "401 401 403 403 403 422 422 422"}, // without a reason
	"get-backup":                {"/backup", "", "401 401 403 403 403 200 200 200"},
	"watch-partitions":          {"/watch/partitions?once=true", "", "401 401 200 200 200 200 200 200"},
	"watch-tenants":             {"/watch/tenants?once=true", "", "401 401 200 200 200 200 200 200"},
	"watch-events":              {"-", "", "401 401 200 200 200 200 200 200"},
	"get-policy":                {"/policy", "", "401 401 403 403 403 404 404 404"},
	"put-policy":                {"/policy?dry_run=true", `{"name":"p.yaml","text":"version: 1\ndefault: limited\n"}`, "401 401 403 403 403 200 200 200"},
	"get-export":                {"/export", "", "401 401 403 403 403 200 200 200"},
	"list-nodes":                {"/nodes", "", "401 401 200 200 200 200 200 200"},
	"get-node":                  {"/nodes/NODE", "", "401 401 200 200 404 200 200 200"},
	"get-node-port":             {"/nodes/NODE/ports/1", "", "401 401 200 200 404 200 200 200"},
	"list-cables":               {"/cables", "", "401 401 403 403 403 200 200 200"},
	"get-map":                   {"/map", "", "401 401 200 200 200 200 200 200"},
	"list-links":                {"/links", "", "401 401 403 403 403 200 200 200"},
	"list-routes":               {"/routes", "", "401 401 403 403 403 200 200 200"},
	"list-managers":             {"/managers", "", "401 401 403 403 403 200 200 200"},
	"list-sweeps":               {"/sweeps", "", "401 401 403 403 403 200 200 200"},
	"hand-over":                 {"/managers/handover?dry_run=true", `{}`, "401 401 403 403 403 200 200 200"},
	"get-snapshot":              {"/snapshot", "", "401 401 403 403 403 200 200 200"},
	"get-proof":                 {"/proof", "", "401 401 200 200 200 200 200 200"},
	"get-certificate":           {"/proof/certificate", "", "401 401 200 200 200 200 200 200"},
	"get-certificate-signature": {"/proof/certificate.sig", "", "401 401 200 200 200 200 200 200"},
	"list-pairs":                {"/proof/pairs", "", "401 401 200 200 200 200 200 200"},
	"get-matrix":                {"/matrix", "", "401 401 200 200 200 200 200 200"},
	"get-matrix-ports":          {"/matrix/ports?a=red&b=red", "", "401 401 200 200 404 200 200 200"},
	"list-findings":             {"/audit", "", "401 401 403 403 403 200 200 200"},
	"list-checks":               {"/audit/checks", "", "401 401 403 403 403 200 200 200"},
	"list-verdicts":             {"/proof/history", "", "401 401 403 403 403 200 200 200"},
	"explain-pair":              {"/why?from=HOST&to=OTHER", "", "401 401 200 200 404 200 200 200"},
	"list-peers":                {"/peers?port=HOST", "", "401 401 200 200 404 200 200 200"},
	"list-counters":             {"/counters", "", "401 401 403 403 403 200 200 200"},
	"get-load":                  {"/map/load", "", "401 401 403 403 403 200 200 200"},
	"list-moments":              {"/past", "", "401 401 403 403 403 200 200 200"},
	"get-moment":                {"/past/moment?at=2026-11-29T10:00:00Z&with=2026-11-29T10:01:00Z", "", "401 401 403 403 403 200 200 200"},
	"acknowledge-alarm":         {"/alarms/acknowledge?dry_run=true", `{"alarm":"0000000000000000"}`, "401 401 404 404 404 404 404 404"},
	"list-alarms":               {"/alarms?audit=true", "", "401 401 200 200 200 200 200 200"},
	"get-status":                {"/status", "", "401 401 200 200 200 200 200 200"},
	"list-multicast-groups":     {"/multicast-groups", "", "401 401 403 403 403 200 200 200"},
	"get-description":           {"/openapi.json", "", "200 200 200 200 200 200 200 200"},
}

// TestWhoMayDoWhat tries every operation as every kind of caller. An operation that is
// not in the matrix fails.
func TestWhoMayDoWhat(t *testing.T) { whoMayDoWhat(t, false) }

// TestASessionMayWhatItsHolderMay: the matrix is the same for sessions, but for what begins
// sessions and ends them.
func TestASessionMayWhatItsHolderMay(t *testing.T) { whoMayDoWhat(t, true) }

// whoMayDoWhat tries the matrix, with a session of each caller in the place of his token.
func whoMayDoWhat(t *testing.T, sessions bool) {
	doc, _ := described(t)
	s := newStand(t)
	s.tenants()
	for _, k := range []string{"0x0100", "0x0111"} {
		s.want(201, call{as: "red", method: "PUT", path: "/partitions/" + k, body: js{"name": "p" + k}})
	}
	s.want(200, call{as: "red", method: "PUT", path: "/partitions/0x0100/members/" + s.hosts[0], body: js{"membership": "full"}})
	sessionsOf := map[string]string{}
	for _, as := range callers {
		if sessions && as != "nobody" && as != "uid:65534" {
			s.tokens["session of "+as] = s.want(201, call{as: as, method: "POST", path: "/session"})["session"].(string)
			sessionsOf[as] = "session of " + as
		}
	}
	names := strings.NewReplacer("HOST", s.hosts[0], "OTHER", s.hosts[1], "FREE", s.hosts[12], "NODE", nodeGUIDOf(s, s.hosts[0]), "SWITCH", "0x0000000000200000")
	seen := map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			row, there := matrix[op.OperationID]
			seen[op.OperationID] = true
			want := strings.Fields(row.want)
			if !there || len(want) != len(callers) {
				t.Errorf("%s %s: %s has no row in the matrix, with a status for each of %q", method, path, op.OperationID, callers)
				continue
			}
			if row.path == "-" {
				continue
			}
			if sessions && (op.OperationID == "create-login" || op.OperationID == "begin-session" || op.OperationID == "end-session") {
				continue
			}
			for i, as := range callers {
				as = cmp.Or(sessionsOf[as], as)
				one := strings.NewReplacer("NEW", fmt.Sprintf("new-%d", i))
				c := call{as: as, method: method, path: one.Replace(names.Replace(row.path))}
				if row.body != "" {
					c.body = one.Replace(names.Replace(row.body))
				}
				if w := s.do(c); fmt.Sprint(w.Code) != want[i] {
					t.Errorf("%s as %q: %d %.300s, want %s", op.OperationID, as, w.Code, w.Body, want[i])
				}
			}
		}
	}
	for id := range matrix {
		if !seen[id] {
			t.Errorf("%s is in the matrix and no operation", id)
		}
	}
}
