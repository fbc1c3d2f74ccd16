package servicecmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/ibwarden/ibwarden/internal/api"
	"github.com/ibwarden/ibwarden/internal/app/cli/terminal"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/observed/snapshot"
	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

var update = flag.Bool("update", false, "write testdata/requests.txt again")

// answers are what the service of these tests answers to reads, by path: an object, or a list.
var answers = map[string]string{
	"/status":                    `{"item":{"version":"1.2","verdict":"isolated","holds":true,"read_at":"2001-09-09T01:46:40Z","fabric":{"switches":2,"cas":4,"links":6},"tenants":2,"partitions":1}}`,
	"/proof":                     `{"item":{"verdict":"isolated"}}`,
	"/partitions":                `{"items":[{"pkey":"0x0100","name":"training","owner":"red","members":2,"waiting":1,"sl":3,"mtu":2048,"rate":10,"ip_over_ib":true,"changed":7}]}`,
	"/partitions/0x0100":         `{"item":{"pkey":"0x0100","name":"training","owner":"red","members":2,"waiting":1,"sl":3,"mtu":2048,"rate":10,"ip_over_ib":true,"changed":7}}`,
	"/partitions/0x0100/members": `{"items":[{"port":"0x0000000000000011","membership":"full","owner":"red","state":"member"},{"port":"0x0000000000000021","membership":"limited","owner":"blue","state":"waiting","waits_for":"blue"}]}`,
	"/tenants":                   `{"items":[{"name":"red","keys":{"first":"0x0100","last":"0x01ff"},"partitions":1,"ports":2,"changed":3},{"name":"blue","partitions":0,"ports":1,"changed":4}]}`,
	"/tenants/red":               `{"item":{"name":"red","keys":{"first":"0x0100","last":"0x01ff"},"quota":{"partitions":2,"members":10,"keys_per_port":4,"changes_per_minute":60},"approve_removals":true,"known_ports_only":true,"partitions":1,"ports":2,"changed":3}}`,
	"/ports":                     `{"items":[{"guid":"0x0000000000000011","owner":"red","found":true,"node":"red-1","number":1,"lid":5,"state":"Active","partitions":["0x0100"]},{"guid":"0x0000000000000012","owner":"red"}]}`,
	"/ports/0x0000000000000011":  `{"item":{"guid":"0x0000000000000011","owner":"red","found":true,"node":"red-1","node_guid":"0x0000000000000010","number":1,"lid":5,"state":"Active","switch":"leaf-1","switch_port":7,"bound":{"switch":"0x0000000000000051","port":7},"released":2,"partitions":["0x0100","0x0101"]}}`,
	"/ports/0x0000000000000012":  `{"item":{"guid":"0x0000000000000012","owner":""}}`,
	"/pools":                     `{"items":[{"first":"0x0000000000001000","last":"0x0000000000001fff","owner":"blue"},{"first":"0x0000000000002000","last":"0x0000000000002fff","owner":"red","released":6}]}`,
	"/tokens":                    `{"items":[{"id":"tok-1","kind":"token","tenant":"red","read_only":true,"created":"2001-09-09T01:46:40Z","expires":"2001-10-09T01:46:40Z","note":"ci"},{"id":"tok-2","kind":"uri","tenant":"blue","created":"2001-09-09T01:46:40Z"}]}`,
	"/drains":                    `{"items":[{"switch":"0x0000000000000051","name":"leaf-1","routes":3},{"switch":"0x0000000000000052","name":"spine","routes":0},{"switch":"0x0000000000000053","name":"spine","routes":0}]}`,
	"/approvals":                 `{"items":[{"id":"app-1","at":"2001-09-09T01:46:40Z","by":"ann","tenant":"red","action":"delete partition","expires":"2001-09-10T01:46:40Z","why":"old","words":["partition 0x0100 is deleted"]},{"id":"offer-2","at":"2001-09-09T01:46:40Z","tenant":"red","from":"blue","action":"offer ports","expires":"2001-09-16T01:46:40Z","words":["port 0x0000000000000021 is offered to tenant red"]}]}`,
	"/revisions":                 `{"items":[{"revision":7,"at":"2001-09-09T01:46:40Z","by":"ann","tenant":"red","action":"put partition","why":"first","words":["partition 0x0100 is made"],"outcome":{"state":"failed","verdict":"violated","reasons":["it is open"]}},{"revision":6,"at":"2001-09-09T01:46:40Z","action":"put partition","words":[]}]}`,
	"/revisions/7":               `{"item":{"revision":7,"at":"2001-09-09T01:46:40Z","by":"ann","tenant":"red","action":"put partition","words":["partition 0x0100 is made"],"edits":[{"key":"partition/0x0100","before":null,"after":{"name":"training"}}]}}`,
	"/audit-log":                 `{"items":[{"sequence":9,"time":"2001-09-09T01:46:40Z","caller":"ann","tenant":"red","action":"put partition","decision":"accepted","revision":7},{"sequence":8,"time":"2001-09-09T01:46:40Z","caller":"eve","tenant":"blue","action":"put partition","decision":"refused","reason":"not yours"}]}`,
	"/audit-log/verify":          `{"item":{"holds":false,"entries":9,"sequence":9,"head":"9:abc","reason":"objects that are not what the revisions wrote: 1003","objects":1,"differ":1003,"differences":[{"key":"port/0x11","problem":"changed","revision":7},{"key":"tenant/blue","problem":"deleted","revision":2},{"key":"tenant/\u001bred","problem":"added"}],"not_compared":["3 that the history does not have"]}}`,
	"/audit-log/export":          `{"sequence":9}` + "\n",
	"/export":                    `{"item":{"text":"partitions:\n\n"}}`,
	"/policy":                    `{"item":{"name":"p.yaml","text":"default: none\n"}}`,
	"/sweeps":                    `{"items":[{"number":3,"began":"2001-09-09T01:46:40Z","done":true,"reason":"a trap","seconds":1.5,"sent":10,"least":8,"answered":9,"repeated":1,"lost":1,"phases":[{"name":"discovery","seconds":1,"sent":4}]},{"number":2,"began":"2001-09-09T01:46:40Z","seconds":2}]}`,
	"/counters":                  `{"items":[{"name":"leaf-1","port":7,"peer":"red-1","sends":1000000,"errors":4}]}`,
	"/matrix":                    `{"verdict":"isolated","read_at":"2001-09-09T01:46:40Z","parties":[{"name":"red","kind":"tenant","ports":2},{"name":"blue","kind":"tenant","ports":1}],"cells":[{"a":0,"b":0,"talk":"all","verdict":"allowed","reason":"they share 0x0100"},{"a":0,"b":1,"talk":"none","verdict":"kept-apart"}]}`,
	"/why":                       `{"item":{"from":{"guid":"0x11"}}}`,
	"/peers":                     `{"items":[]}`,
	"/managers":                  `{"items":[{"node":"mgmt-1","port":"0x0000000000000031","self":true,"state":"master","trust":"self"},{"node":"mgmt-2","port":"0x0000000000000032","state":"standby","trust":"shared","policy":"other"},{"node":"red-1","port":"0x0000000000000011","state":"standby","trust":"none","why":"it shares no secret"}]}`,
	"/cables":                    `{"items":[{"node":"0x0000000000000051","name":"leaf-1","port":3,"kind":"missing","text":"leaf-1:3 leads nowhere: listed is spine:1"}]}`,
	"/backup":                    "the store",
}

func init() {
	b := subnettest.New()
	leaf := b.Switch(4, "leaf")
	b.Host(leaf, "red")
	b.ManagedFrom(b.Host(leaf, "blue"))
	b.Route()
	var text strings.Builder
	if err := snapshot.Write(&text, &snapshot.Snapshot{Fabric: b.Fabric, Faults: []snapshot.Fault{{Where: "leaf port 4", Why: "no answer"}}}); err != nil {
		panic(err)
	}
	answers["/snapshot"] = text.String()
}

// changed is what it answers to writes, and plan is in it for a dry run.
const (
	changed = `{"revision":8,"words":["it is done"],"outcome":{"state":"proved","verdict":"isolated","seconds":1.5,"writes":3}%s,"token":{"id":"tok-3"},"secret":"ibw_secret","address":"http://127.0.0.1:8443","code":"abc"}`
	plan    = `,"plan":{"changes":true,"ports":2,"set":3,"read_back":3,"gained":1,"lost":4,"text":"a plan\n","document":{"warnings":["look out"]}}`
)

// recorder answers, and keeps what it was asked. The request of that number fails (1 is the
// first); none for 0.
type recorder struct {
	changed, proof string // in place of what is answered to writes and of the verdict; "" for that

	// instead are answers to reads in place of the usual ones, by path; unready are paths that
	// are answered as by a service which has not read the fabric.
	instead map[string]string
	unready []string

	mu       sync.Mutex
	requests []string
	fails    int
	status   int
}

func (s *recorder) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body) // of this test
	path := strings.TrimPrefix(r.URL.Path, api.Prefix)
	text := r.Method + " " + path
	if r.URL.RawQuery != "" {
		text += "?" + r.URL.RawQuery
	}
	for _, name := range []string{"If-Match", "If-None-Match", "Why", "Authorization"} {
		if v := r.Header.Get(name); v != "" {
			text += "\n    " + name + ": " + v
		}
	}
	if len(body) > 0 {
		text += "\n    " + string(body)
	}
	s.requests = append(s.requests, text)
	w.Header().Set("Server", api.ServerName)
	w.Header().Set("ETag", `"7"`)
	answer := answers[path]
	if text, is := s.instead[path]; is {
		answer = text
	}
	switch {
	case slices.Contains(s.unready, path):
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"status":503,"detail":"the fabric was not read yet"}`)
	case len(s.requests) == s.fails:
		w.WriteHeader(s.status)
		fmt.Fprint(w, `{"detail":"the service is broken"}`)
	case r.Method != http.MethodGet && s.changed != "" && (path != "/policy" || r.URL.Query().Get("dry_run") == "" || strings.Contains(s.changed, "plan")):
		fmt.Fprint(w, s.changed)
	case path == "/proof" && s.proof != "":
		fmt.Fprintf(w, `{"item":{"verdict":%q}}`, s.proof)
	case r.Method != http.MethodGet && r.URL.Query().Get("dry_run") != "":
		fmt.Fprintf(w, changed, plan)
	case r.Method != http.MethodGet:
		fmt.Fprintf(w, changed, "")
	case answer == "" && path != "/events":
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"detail":"there is no such thing"}`)
	case path == "/events":
		fmt.Fprint(w, "id: 1\ndata: {\"id\":\"1\",\"kind\":\"manager\",\"at\":\"2001-09-09T01:46:40Z\",\"text\":\"hello\"}\n\nid: 2\ndata: {\"id\":\"2\",\"kind\":\"revision\",\"at\":\"2001-09-09T01:46:40Z\",\"revision\":7,\"text\":\"made\"}\n\n")
	default:
		fmt.Fprint(w, answer)
	}
}

// recording serves the recorder at a socket.
func recording(t *testing.T) (*recorder, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &recorder{}
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(l) }() // until it is closed
	t.Cleanup(func() { server.Close() })
	return s, "unix:" + path
}

// again runs a line with the request of a number failing, and returns what was asked.
func (s *recorder) again(t *testing.T, server, line string, fails, status int) (out string, requests []string, err error) {
	t.Helper()
	s.mu.Lock()
	s.requests, s.fails, s.status = nil, fails, status
	s.mu.Unlock()
	root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(everyCommand()...)
	root.AddCommand(asking()...)
	var b bytes.Buffer
	root.SetOut(&b)
	root.SetErr(&b)
	root.SetArgs(append(strings.Fields(line), "--server", server))
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	err = root.ExecuteContext(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(b.String(), server, "SERVER"), s.requests, err
}

// everyCommand are all commands of this package beside each other: what is below show and policy
// is put there by package cli.
func everyCommand() []*cobra.Command {
	return slices.Concat(Commands(), Shows(), []*cobra.Command{Console(), Export()})
}

// asking are commands made of what other packages call here.
func asking() []*cobra.Command {
	var n Named
	var asJSON bool
	command := func(use string, run func(c *cobra.Command, args []string) error) *cobra.Command {
		c := &cobra.Command{Use: use, RunE: run, Args: cobra.ArbitraryArgs}
		n.Add(c.Flags())
		c.Flags().BoolVar(&asJSON, "json", false, "")
		c.Flags().String("journal", "", "")
		return c
	}
	print := func(c *cobra.Command, what any, err error) error {
		if err == nil {
			err = json.NewEncoder(c.OutOrStdout()).Encode(what)
		}
		return err
	}
	return []*cobra.Command{
		command("plan", func(c *cobra.Command, args []string) error { return n.Plan(c, args[0], true, asJSON) }),
		command("apply", func(c *cobra.Command, args []string) error {
			return n.Apply(c, args[0], false, asJSON, func() error { return nil })
		}),
		command("declined", func(c *cobra.Command, args []string) error {
			return n.Apply(c, args[0], false, asJSON, func() error { return terminal.WithMisuse(fmt.Errorf("declined")) })
		}),
		command("why", func(c *cobra.Command, args []string) error {
			a, err := n.Why(c, args[0], args[1], 2)
			return print(c, a.From, err)
		}),
		command("snap", func(c *cobra.Command, args []string) error {
			has := func(name string) bool { return slices.Contains(args, name) }
			s, err := n.Snapshot(c, sweep.Options{QoS: has("qos"), Aliases: has("aliases"), Audit: has("audit")})
			if err == nil {
				_, err = fmt.Fprintln(c.OutOrStdout(), len(s.Fabric.Nodes), "nodes", s.Faults)
			}
			return err
		}),
		command("show", func(c *cobra.Command, args []string) error {
			return n.Show(c, sweep.Options{}, func(f *observed.Fabric) error {
				_, err := fmt.Fprintln(c.OutOrStdout(), len(f.Nodes), "nodes")
				return err
			})
		}),
		command("peers", func(c *cobra.Command, args []string) error {
			p, err := n.Peers(c, args[0], 3)
			return print(c, p, err)
		}),
	}
}

// lines are the command lines of the tests; FILE is a file with a policy or a token, OUT one
// that is not there.
const lines = `tenant list
tenant list --json
tenant show red
tenant show red --json
tenant show nobody
tenant create green
tenant create green --keys 0x0300-0x03ff --partitions 1 --members 2 --keys-per-port 3 --changes-per-minute 4 --approve-removals --known-ports-only --why new
tenant create green --keys 0x0300
tenant set red --members 5
tenant set red --keys 0x0100-0x02ff --approve-removals=false --known-ports-only=false --seen 7
tenant set red --members 5 --seen 6
tenant delete red
tenant delete red --seen 7
tenant delete red --seen 6
partition list
partition list --tenant red --json
partition show training
partition show 0x0100 --json
partition show 0xzz
partition create training --pkey 0x0105 --tenant red --member 0x11=full --member 0x12=limited --sl 2 --mtu 4096 --rate 20 --ip-over-ib
partition create training --member 0x11
partition create training --dry-run --json
partition set training --sl 4
partition set training --name other --mtu 1024 --rate 5 --ip-over-ib=false --dry-run
partition set 0x0100 --sl 4 --seen 6
partition delete training --seen 8 --wait
partition delete 0x0100
partition delete 0x0100 --seen 6
partition member list training
partition member list training --state waiting --json
partition member add training 0x11=full 0000000000000012=both --index0
partition member add training 0x11=full --seen 6
partition member add training full
partition member set training 0x11=full
partition member set training 0x11=full --seen 6
partition member remove training 0x11 0x12 --seen 7
partition member remove training 11x
partition member refuse training 0x21 --wait --json
partition member refuse training 0x21 --seen 6
port list
port list --tenant red --node red-1 --json
port show 0x11
port show 0x12
port show 0x11 --json
port assign --tenant red 0x11 0x12 --yes
port assign --tenant red 0x11 --bound 0x51:7 --seen 7 --yes
port assign --tenant red 0x13 0x11 0x12 --seen 7 --yes
port assign --tenant red 0x11 0x12 --bound 0x51:7 --yes
port assign --tenant red 0x11 --bound 0x51:255 --yes
port assign --tenant red 0x11 --bound 0x51:254
port assign --tenant red zz
port move --tenant red 0x11 0x12 --yes
port move --tenant red --into 0x100 --into 0x101=limited 0x11 --seen 7 --wait --yes
port move --tenant red --into 0x100=owner 0x11
port move --tenant red --into zz 0x11
port offer --tenant blue 0x11 0x12 --why swap
port offer --tenant blue 0x11 --seen 7 --dry-run
port offer 0x11
port offer --tenant blue zz
port release 0x11 --seen 6
port release 0x11 0x12
port pool list
port pool list --json
port pool assign --tenant blue 0x1000-0x1fff
port pool assign --tenant blue 0x1000-zz
port pool assign --tenant blue zz-0x1000
port pool release 0x1000
tenant token list
tenant token list --tenant red --json
tenant token create --tenant red --read-only --keys 0x0100-0x010f --note ci
tenant token create --uri spiffe://x --json
tenant token create --certificate FILE --tenant red
tenant token create --certificate OUT
tenant token create --keys 0x0100
tenant token create --expires-in -1h
tenant token create --dry-run
tenant token create --expires-in 1h --tenant red
tenant token create --output OUT
tenant token create --output OUT --json
tenant token create --output FILE
tenant token create --output OUT --certificate FILE
tenant token create --output OUT --uri spiffe://x
tenant token create --output OUT --dry-run
tenant token create --dry-run --json
tenant token create --data OUT --dry-run
tenant token create --data OUT --wait
tenant token create --data FILE
tenant token delete tok-1
tenant token delete tok-1 --keep-made
drain leaf-1
drain end leaf-1
drain end 0x0000000000000052
drain end spine
drain end leaf-9
drain list
drain list --json
approval list
approval list --json
approval approve app-1
approval approve offer-2 --into 0x100 --into 0x101=limited --wait
approval approve offer-2 --into zz
approval reject app-1 --dry-run
rollback 5 --tenant red
rollback 5 --seen 7
rollback five
history list
history list --limit 1 --json
history list --limit 0
history show 7
history show 7 --json
history show 0
history decisions
history decisions --refused --limit 1 --json
history verify
history verify --head 1:a --head 2:b --json
history export
history accept-restored
history accept-restored --why broken
events
events --json --after 1
export
export --json
export --applied
export --applied --json
sweeps
sweeps --limit 2
sweeps --limit 2 --json
sweeps --limit 0
console
store backup OUT
matrix
matrix --json
matrix red
matrix red blue
matrix red green
matrix blue red
matrix green red
snap
snap qos
snap aliases audit
snap qos aliases audit
show
plan FILE
plan FILE --json
plan OUT
plan FILE --journal x
apply FILE
apply FILE --json
declined FILE
why 0x11 0x12
peers 0x11
peers 0x11 --token-file FILE
tenant list --token-file OUT
top
status
status --json
status --fabric umad`

// outcomes are answers to writes, and outcomeLines the command lines that each is shown to.
var outcomes = []struct{ name, changed, proof string }{
	{"pending", `{"revision":8,"words":["it is done"],"outcome":{"state":"pending"}}`, "isolated"},
	{"failed", `{"revision":8,"words":["it is done"],"outcome":{"state":"failed","verdict":"violated","writes":2,"reasons":["leaf-1 is open","and more"]}}`, "isolated"},
	{"refused", `{"revision":8,"words":["it is done"],"outcome":{"state":"refused","verdict":"isolated","reasons":["no room"]}}`, "isolated"},
	{"proved, not isolated", `{"revision":8,"words":["it is done"],"outcome":{"state":"proved","verdict":"unenforced"}}`, "isolated"},
	{"no outcome", `{"revision":8,"words":["it is done"]}`, "isolated"},
	{"nothing", `{"revision":8,"words":[]}`, "isolated"},
	{"nothing, violated", `{"revision":8,"words":[]}`, "violated"},
	{"nothing, no verdict", `{"revision":8,"words":[]}`, "good"},
	{"repeated", `{"revision":8,"words":["it is done"],"repeated":true}`, "isolated"},
	{"approval", `{"revision":8,"words":["it is to be done"],"approval":"app-2"}`, "isolated"},
	{"numbers of a plan", `{"revision":8,"words":["it would be done"],"plan":{"ports":2,"set":3,"gained":1,"lost":4,"document":{},"unread":2}}`, "isolated"},
	{"plan that is none", `{"revision":8,"words":[],"plan":{"text":"a\n\nb\u001b[2J\n","document":7}}`, "isolated"},
}

const outcomeLines = `tenant delete red
tenant delete red --wait
tenant delete red --wait --json
tenant delete red --dry-run --wait
partition create training --wait
plan FILE
apply FILE
apply FILE --json`

// TestRequests: what each command asks, and prints of the answers. testdata/requests.txt has
// all of it: go test -update writes it, and the difference is to be read.
func TestRequests(t *testing.T) {
	s, server := recording(t)
	var b strings.Builder
	show := func(line string, status int) {
		fails := min(status, 1)
		filled, files := fill(t, line)
		out, requests, err := s.again(t, server, filled, fails, status)
		text := "$ " + filled + "\n"
		for _, r := range requests {
			text += "  " + r + "\n"
		}
		if text += out; err != nil {
			text += fmt.Sprintf("error, status %d: %v\n", statusOf(err), err)
		}
		b.WriteString(now.ReplaceAllString(files.Replace(text), "NOW") + "\n")
	}
	for _, line := range strings.Split(lines, "\n") {
		show(line, 0)
	}
	for _, o := range outcomes {
		fmt.Fprintf(&b, "# %s\n\n", o.name)
		s.changed, s.proof = o.changed, o.proof
		for _, line := range strings.Split(outcomeLines, "\n") {
			show(line, 0)
		}
	}
	s.changed, s.proof = "", ""
	for _, status := range []int{400, 401, 404, 409, 412, 422, 428, 503} {
		fmt.Fprintf(&b, "# status %d\n\n", status)
		for _, line := range []string{"tenant delete red", "port release 0x11 --seen 7", "plan FILE"} {
			show(line, status)
		}
	}
	path := filepath.Join("testdata", "requests.txt")
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// now is what a screen says of the time.
var now = regexp.MustCompile(`20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\dZ|(checked|proved) \d\S+ ago`)

// statusOf is the exit status that an error carries; cobra's own errors have none.
func statusOf(err error) int {
	var e *terminal.ExitError
	if errors.As(err, &e) {
		return e.Status
	}
	return -1
}

// fill puts files in place of FILE and OUT, and returns what takes their names back.
func fill(t *testing.T, line string) (string, *strings.Replacer) {
	t.Helper()
	dir := t.TempDir()
	file, out := filepath.Join(dir, "file"), filepath.Join(dir, "out")
	if err := os.WriteFile(file, []byte("default: none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer("FILE", file, "OUT", out).Replace(line), strings.NewReplacer(file, "FILE", out, "OUT")
}

// TestNoErrorIsLost: whichever request of a command fails, the command fails with what the
// service says, and asks for nothing more: no change is made after something that it rests on
// could not be read.
func TestNoErrorIsLost(t *testing.T) {
	s, server := recording(t)
	for _, line := range strings.Split(lines, "\n") {
		filled, _ := fill(t, line)
		_, requests, _ := s.again(t, server, filled, 0, 0)
		for n := 1; n <= len(requests); n++ {
			filled, _ := fill(t, line)
			_, asked, err := s.again(t, server, filled, n, http.StatusInternalServerError)
			if err == nil || !strings.Contains(err.Error(), "the service is broken") || statusOf(err) != terminal.Bad {
				t.Errorf("%s: request %d fails, and the command ends with %v", line, n, err)
			}
			if len(asked) != n {
				t.Errorf("%s: request %d fails, and the command goes on with %v", line, n, asked[n:])
			}
		}
	}
}
