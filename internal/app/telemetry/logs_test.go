package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/judge/isolation"
	"github.com/ibwarden/ibwarden/internal/manager/apply"
	"github.com/ibwarden/ibwarden/internal/manager/cables"
	"github.com/ibwarden/ibwarden/internal/manager/event"
	"github.com/ibwarden/ibwarden/internal/manager/facts"
	"github.com/ibwarden/ibwarden/internal/manager/mkey"
	"github.com/ibwarden/ibwarden/internal/manager/plan"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
	"github.com/ibwarden/ibwarden/internal/manager/watch"
	"github.com/ibwarden/ibwarden/internal/observed"
	"github.com/ibwarden/ibwarden/internal/perfmgr"
	"github.com/ibwarden/ibwarden/internal/topology"
)

func leafPort() *observed.Port {
	n := &observed.Node{Description: "leaf-1", Switch: &observed.Switch{}, Ports: make([]observed.Port, 3)}
	n.Info.NodeGUID = 0x200000
	for i := range n.Ports {
		n.Ports[i].Node, n.Ports[i].Num = n, 0
	}
	n.Ports[2].Num = 2
	return &n.Ports[2]
}

func trap(number smp.TrapNumber) event.Trapped {
	n := smp.Notice{IsGeneric: true, TrapNumber: number}
	return event.Trapped{Number: number, Report: watch.Explain(leafPort(), &n, &watch.Directory{Holder: func(lid ib.LID) *observed.Port { return nil }})}
}

// events has one of each kind, with the level that it has.
var events = []struct {
	event.Event
	level slog.Level
}{
	{event.PhaseBegun{Phase: event.PhaseProve}, slog.LevelDebug},
	{event.PhaseBegun{Phase: event.PhasePause}, slog.LevelInfo},
	{event.Found{}, slog.LevelDebug},
	{event.SweepFault{Fault: sweep.Fault{Where: "leaf-1:2", Err: errors.New("no answer"), Port: leafPort()}}, slog.LevelWarn},
	{event.Warned{Text: "leaf-1 is odd"}, slog.LevelWarn},
	{event.Refused{Err: errors.New("two\nlines")}, slog.LevelError},
	{event.Routed{Notes: []string{"routing engine auto takes ftree", "fat tree of 2 levels"}}, slog.LevelInfo},
	{event.PolicyGiven{}, slog.LevelDebug},
	{event.Failed{Failure: apply.Failure{Port: leafPort(), Attribute: smp.AttrPKeyTable, Err: errors.New("no answer")}}, slog.LevelError},
	{event.Forgotten{Elements: observed.ElementEnforcement, Ports: 2, Example: "leaf-1:2"}, slog.LevelWarn},
	{event.Fenced{Fence: facts.Fence{Name: "leaf-1:2", Reason: "why"}}, slog.LevelError},
	{event.Unfenced{Fence: facts.Fence{Name: "leaf-1:2", Reason: "why"}}, slog.LevelWarn},
	{event.Learned{List: cables.Of(new(topology.Netlist))}, slog.LevelInfo},
	{event.TakingOver{From: 2, Reason: "it does not answer"}, slog.LevelWarn},
	{event.Deferred{Master: 7, Reason: "why"}, slog.LevelWarn},
	{event.LockedOut{Err: errors.New("why")}, slog.LevelWarn},
	{event.Slept{For: time.Second}, slog.LevelWarn},
	{event.Halted{Why: "the store does not answer", Had: true, Silent: []ib.PortGUID{5}}, slog.LevelError},
	{event.Resumed{}, slog.LevelWarn},
	{event.Asked{Alone: true}, slog.LevelDebug},
	{event.Unexpected{Port: 7, At: "mgmt-2"}, slog.LevelError},
	{event.RogueManager{Port: 7, At: "mgmt-2", Reason: "why"}, slog.LevelError},
	{event.NoMaster{Last: event.Master{Port: 7, Name: "mgmt-2", Counts: true}}, slog.LevelError},
	{event.SeveralMasters{Masters: []event.Master{{Port: 7, Name: "mgmt-2", Counts: true}}, Count: 2}, slog.LevelError},
	{event.OneMaster{Master: event.Master{Port: 7, Name: "mgmt-2", Counts: true}}, slog.LevelInfo},
	{event.MasterChanged{From: event.Master{Port: 7, Name: "mgmt-2"}, To: event.Master{Port: 9, Name: "mgmt-1"}}, slog.LevelWarn},
	{event.OtherPolicy{Managers: []event.Master{{Port: 7, Name: "mgmt-2", Counts: true}}, Count: 1}, slog.LevelWarn},
	{event.SamePolicy{}, slog.LevelInfo},
	{event.Guarding{Reason: "0x0000000000000007 does not answer"}, slog.LevelError},
	{event.MasterFlapping{Changes: 4, Within: time.Minute, Master: event.Master{Port: 7, Name: "mgmt-2"}}, slog.LevelError},
	{event.Stopped{Port: leafPort(), Counters: []observed.Violations{observed.PKeyViolations}}, slog.LevelWarn},
	{perfmgr.Dropped{Port: leafPort(), Counter: perfmgr.PortXmitConstraintErrors, Packets: 3}, slog.LevelWarn},
	{event.Drifted{Op: plan.Op{Port: leafPort(), Attribute: smp.AttrPKeyTable, Modifier: 3}}, slog.LevelWarn},
	{event.Resweeping{Reason: "why", Links: 2}, slog.LevelDebug},
	{event.Changed{What: "leaf-1 has another CapabilityMask"}, slog.LevelInfo},
	{event.Flooded{Sender: "red-1"}, slog.LevelWarn},
	{event.Flooded{Sender: "leaf-1:2", Link: true}, slog.LevelWarn},
	{event.Tried{By: "red-1", At: "leaf-1", Method: "Set", Attribute: "PortInfo"}, slog.LevelDebug},
	{event.Disbelieved{Sender: "red-1", Number: 256, Issuer: 7}, slog.LevelWarn},
	{trap(smp.TrapBadMKey), slog.LevelWarn}, {trap(smp.TrapBadPKey), slog.LevelWarn}, {trap(smp.TrapBadQKey), slog.LevelWarn},
	{trap(smp.TrapSwitchBadPKey), slog.LevelWarn}, {trap(smp.TrapLinkIntegrity), slog.LevelWarn}, {trap(smp.TrapBufferOverrun), slog.LevelWarn},
	{trap(smp.TrapFlowControlWatchdog), slog.LevelWarn}, {trap(smp.TrapLinkStateChanged), slog.LevelDebug},
	{trap(smp.TrapLocalChange), slog.LevelInfo}, {trap(smp.TrapSystemImageGUID), slog.LevelInfo}, {trap(smp.TrapGIDInService), slog.LevelInfo},
	{event.Regrouped{Groups: 1, Proof: &isolation.Multicast{Verdict: isolation.Isolated}}, slog.LevelDebug},
	{event.Regrouped{Groups: 1, Proof: &isolation.Multicast{Verdict: isolation.Violated}}, slog.LevelWarn},
	{event.Rerouted{Writes: 3}, slog.LevelInfo},
	{event.Rerouted{Writes: 3, Failures: 1}, slog.LevelWarn},
	{event.Completed{Result: &event.Result{Proof: &isolation.Proof{Verdict: isolation.Isolated}}}, slog.LevelDebug},
	{event.Announced{Port: 7}, slog.LevelInfo},
	{event.Released{To: 7, Ports: 3}, slog.LevelWarn},
	{mkey.GivenKeys{Ports: 3}, slog.LevelInfo},
	{mkey.GivenKeys{Ports: 3, Failures: 1}, slog.LevelWarn},
	{watch.LinksDown{Links: []watch.Link{{A: watch.LinkEnd{Name: "leaf-1:5"}, B: watch.LinkEnd{Name: "spine-1:1"}}}}, slog.LevelWarn},
	{watch.LinksUp{New: []watch.Device{{Name: "red-1", GUID: 7}}}, slog.LevelInfo},
	{watch.LinksAgain{Reason: "leaf-1:5 went from Active to Initialize"}, slog.LevelInfo},
}

// Every type that is an event has a level, a name, one line, and says the same as
// JSON; the sources say which types there are.
func TestEveryEventHasALevel(t *testing.T) {
	kind := regexp.MustCompile(`^[a-z0-9-]+$`)
	seen := map[string]bool{}
	for _, x := range events {
		d := Describe(x.Event)
		seen[fmt.Sprintf("%T", x.Event)] = true
		if d.Level != x.level || !kind.MatchString(d.Kind) || d.Text == "" || strings.Contains(d.Text, "\n") {
			t.Errorf("%T: level %v, want %v; kind %q, text %q", x.Event, d.Level, x.level, d.Kind, d.Text)
		}
		var out bytes.Buffer
		o := LogOptions{format: "json", level: "debug"}
		l := o.Default(&out)
		if err := l.Apply(&o); err != nil {
			t.Fatal(err)
		}
		l.Event(x.Event)
		var doc map[string]any
		if err := json.Unmarshal(out.Bytes(), &doc); err != nil || doc["event"] != d.Kind || doc["msg"] != d.Text || strings.Count(out.String(), "\n") != 1 {
			t.Errorf("%T: %v: %s", x.Event, err, &out)
		}
	}
	for _, source := range []struct{ file, pkg string }{
		{"../../manager/event", "event"}, {"../../manager/watch/links.go", "watch"}, {"../../manager/mkey", "mkey"},
	} {
		for _, name := range eventTypes(t, source.file) {
			if !seen[source.pkg+"."+name] {
				t.Errorf("%s.%s has no level: add it to Describe, docs/logs.md and this list", source.pkg, name)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("%d types of events", len(seen))
	}
}

// eventTypes are the types of a file, or directory, whose comment or name makes
// them events: all that have a String method in event.go, else those whose comment
// says "is an event".
func eventTypes(t *testing.T, path string) (out []string) {
	t.Helper()
	files := []string{path}
	if info, err := os.Stat(path); err != nil {
		t.Fatal(err)
	} else if info.IsDir() {
		files = nil
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".go") {
				files = append(files, path+"/"+e.Name())
			}
		}
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if strings.HasSuffix(file, "event.go") && d.Recv != nil && d.Name.Name == "String" {
					out = append(out, d.Recv.List[0].Type.(*ast.Ident).Name)
				}
			case *ast.GenDecl:
				if d.Tok == token.TYPE && strings.Contains(d.Doc.Text(), "is an event") {
					out = append(out, d.Specs[0].(*ast.TypeSpec).Name.Name)
				}
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: no events: looking in the wrong place", path)
	}
	return out
}

// said is what a log of these flags writes of something.
func said(t *testing.T, o LogOptions, stamped bool, do func(*Log)) string {
	t.Helper()
	var out bytes.Buffer
	l := o.Default(&out)
	if err := l.Apply(&o); err != nil {
		t.Fatal(err)
	}
	if stamped {
		l.Stamp()
	}
	do(l)
	return out.String()
}

func TestForms(t *testing.T) {
	cut := events[len(events)-3].Event
	tell := func(l *Log) { l.Event(cut); l.Event(event.PhaseBegun{Phase: event.PhaseProve}) }
	for name, c := range map[string]struct {
		LogOptions
		stamped bool
		want    string
	}{
		"a command":     {LogOptions{format: "text"}, false, `^ibwarden: link down: leaf-1:5 - spine-1:1\n$`},
		"a daemon":      {LogOptions{format: "text"}, true, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z WARN  link down: leaf-1:5 - spine-1:1\n$`},
		"verbose":       {LogOptions{format: "text", Verbose: true}, false, `^ibwarden: link down: .*\nibwarden: prove \.\.\.\n$`},
		"a level":       {LogOptions{format: "text", level: "error"}, false, `^$`},
		"level over -v": {LogOptions{format: "text", level: "WARN", Verbose: true}, false, `^ibwarden: link down.*\n$`},
		"JSON":          {LogOptions{format: "json"}, true, `^\{"time":"[^"]*Z","level":"WARN","msg":"link down: leaf-1:5 - spine-1:1","event":"link-down","links":\[\{"a":\{"name":"leaf-1:5","node_guid":"0x0+","port":0\},"b":\{"name":"spine-1:1",.*\}\],"gone":\[\]\}\n$`},
	} {
		if got := said(t, c.LogOptions, c.stamped, tell); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%s: %q, want %s", name, got, c.want)
		}
	}
	for _, o := range []LogOptions{{format: "xml"}, {format: "text", level: "loud"}} {
		if err := new(LogOptions).Default(&bytes.Buffer{}).Apply(&o); err == nil || !strings.Contains(err.Error(), "want ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// What a device says of itself steers no terminal and makes no line of its own.
func TestNothingIsForged(t *testing.T) {
	evil := event.Warned{Text: "evil\nibwarden: verdict: isolated\x1b[2J\r\u009b2J\u202e"}
	for name, o := range map[string]LogOptions{"text": {format: "text"}, "json": {format: "json"}} {
		for _, stamped := range []bool{false, true} {
			got := said(t, o, stamped, func(l *Log) {
				l.Event(evil)
				l.Event(event.Refused{Err: errors.New("evil\nibwarden: \x1b")})
			})
			if strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\x1b\r") || name == "text" && strings.ContainsAny(got, "\u009b\u202e") {
				t.Errorf("%s: %q", name, got)
			}
		}
	}
}

// Under systemd lines have their level and no time: the journal has it.
func TestJournal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var at unix.Stat_t
	if err := unix.Fstat(int(w.Fd()), &at); err != nil {
		t.Fatal(err)
	}
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", at.Dev, at.Ino))
	for _, o := range []LogOptions{{format: "text"}, {format: "json"}} {
		l := o.Default(w)
		if err := l.Apply(&o); err != nil {
			t.Fatal(err)
		}
		l.Stamp()
		l.Event(events[len(events)-3].Event)
		fmt.Fprintln(l.Lines(), "ibwarden: policy read again")
		fmt.Fprintln(LogAt(l.Lines(), slog.LevelWarn), "policy:1:1: odd (warning)")
		l.ReloadFailed("policy", errors.New("one\ntwo"))
		l.Fail(errors.New("the end"))
	}
	w.Close()
	var out bytes.Buffer
	if _, err := out.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`^<4>link down: leaf-1:5 - spine-1:1
<6>policy read again
<4>policy:1:1: odd \(warning\)
<3>one; two - the previous policy stays in force
<3>the end
<4>\{"level":"WARN","msg":"link down: .*\}
<6>\{"level":"INFO","msg":"policy read again"\}
<4>\{"level":"WARN","msg":"policy:1:1: odd \(warning\)"\}
<3>\{"level":"ERROR","msg":"one; two - the previous policy stays in force","event":"reload-failed","what":"policy","reason":"one; two"\}
<3>\{"level":"ERROR","msg":"the end"\}
$`)
	if !want.MatchString(out.String()) {
		t.Errorf("%s", &out)
	}
	t.Setenv("JOURNAL_STREAM", "1:1") // inherited, and standard error is another
	if toJournal(r) {
		t.Error("another stream was taken for the journal")
	}
}

// A storm is summed up, each reporter has his own share of lines, and what is about
// ports that somebody has to see to is told always.
func TestStorm(t *testing.T) {
	var out bytes.Buffer
	o := LogOptions{format: "text"}
	l := o.Default(&out)
	now := time.Unix(0, 0)
	l.storm.now = func() time.Time { return now }
	again := func(n int, e func(i int) event.Event) {
		for i := range n {
			l.Event(e(i))
		}
	}
	lines := func() int { return strings.Count(out.String(), "\n") }
	again(50, func(int) event.Event { return event.Warned{Text: "the same"} })
	if lines() != 1 {
		t.Errorf("%d lines for one thing: %s", lines(), &out)
	}
	again(100, func(i int) event.Event { return event.Warned{Text: fmt.Sprintf("thing %d", i)} })
	if lines() != kindMax {
		t.Errorf("%d lines of one kind, want %d", lines(), kindMax)
	}
	again(100, func(i int) event.Event {
		n, err := smp.NewTrap(smp.TrapBadPKey, smp.ProducerCA, 5, &smp.BadKeyDetails{LID1: ib.LID(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		e := event.Trapped{Number: n.TrapNumber, Report: watch.Explain(leafPort(), &n, &watch.Directory{Holder: func(ib.LID) *observed.Port { return nil }})}
		name := fmt.Sprintf("red-%d", i%2)
		e.Report.At.Name = &name
		return e
	})
	if lines() != kindMax+2*reporterMax {
		t.Errorf("%d lines, want %d of each reporter more", lines(), reporterMax)
	}
	again(30, func(i int) event.Event {
		return event.Fenced{Fence: facts.Fence{Name: fmt.Sprint("leaf-1:", i)}}
	})
	if lines() != kindMax+2*reporterMax+30 {
		t.Errorf("%d lines: ports that are fenced are all told", lines())
	}
	out.Reset()
	now = now.Add(repeatPeriod - 1)
	if l.Tick(); lines() != 0 {
		t.Errorf("too early: %s", &out)
	}
	now = now.Add(tickGap)
	l.Tick()
	for _, want := range []string{
		"81 more within 10s that are not shown, after 20: warning\n",
		"45 more within 10s that are not shown, after 5: trap-257 reported by red-0\n", "trap-257 reported by red-1\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, &out)
		}
	}
	out.Reset()
	again(50, func(int) event.Event { return event.Warned{Text: "the same"} })
	if lines() != 0 {
		t.Errorf("what every pass finds again is said again: %s", &out)
	}
	now = now.Add(standingPeriod)
	if l.Tick(); !strings.Contains(out.String(), "99 more times within 1h0m0s: the same\n") {
		t.Errorf("%s", &out)
	}
	if out.Reset(); len(l.storm.same)+len(l.storm.groups) != 0 {
		t.Error("what is over is remembered")
	}
	l.Event(event.Changed{What: "a thing"})
	l.Event(event.Changed{What: "a thing"})
	l.Event(event.Changed{What: "a thing"})
	now = now.Add(repeatPeriod)
	if l.Tick(); out.String() != "ibwarden: a thing\nibwarden: 2 more times within 10s: a thing\n" {
		t.Errorf("%q", &out)
	}
	out.Reset()
	l.Event(event.Warned{Text: "the same"})
	l.Event(event.Warned{Text: "the same"})
	l.Close()
	if got := out.String(); got != "ibwarden: the same\nibwarden: once more within 1h0m0s: the same\n" {
		t.Errorf("%q", got)
	}
}
