package ibsimd

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/internal/names"
	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/internal/topology"
)

// Console carries out ibsim's console commands on a server. One goroutine may use it,
// concurrently with that of Serve.
type Console struct {
	server *Server
	out    io.Writer
	text   bytes.Buffer // of the command that runs: the server must not wait for out
	depth  int          // of command files that read command files

	unlinked map[end]end // where cables were that Unlink has pulled
	losses   map[ib.NodeGUID]map[ib.PortNum]lossRule
	random   *rand.Rand
	added    []command
}

// Add gives the console another command, which is told what follows its name and is carried
// out between two turns of the server.
func (c *Console) Add(name, arguments, about string, run func(f *fabric.Fabric, arguments string) error) {
	c.added = append(c.added, command{name, arguments, about, func(c *Console, w *words) error { return run(c.server.fabric, w.rest) }, false})
}

// all are the commands of the console, those that were added before the ends.
func (c *Console) all() []command {
	own := commands()
	return slices.Concat(own[:len(own)-2], c.added, own[len(own)-2:])
}

// lossRule is what the Error command set for a port.
type lossRule struct {
	percent   uint64
	attribute uint64 // 0 for all
}

// NewConsole makes a console that answers on out.
func NewConsole(s *Server, out io.Writer) *Console {
	return &Console{
		server: s, out: out,
		unlinked: make(map[end]end),
		losses:   make(map[ib.NodeGUID]map[ib.PortNum]lossRule),
		random:   rand.New(rand.NewPCG(s.config.Fabric.Seed, 1)),
	}
}

// ErrQuit says that the command was Quit.
var ErrQuit = errors.New("quit")

// command is one that the console knows.
type command struct {
	name, arguments, about string
	// run is called between two turns of the server, except for those marked outside.
	run     func(*Console, *words) error
	outside bool
}

// commands are listed in the order of Help.
func commands() []command {
	return []command{
		{"Dump", `["node"]`, "nodes, their ports and forwarding tables", (*Console).dump, false},
		{"Route", `"node"|LID "node"|LID`, "the way of a LID-routed packet", (*Console).route, false},
		{"Link", `"node"[port] "node"[port]`, "lay a cable", (*Console).link, false},
		{"ReLink", `"node"[port] | "node"`, "lay again what Unlink pulled", (*Console).relink, false},
		{"Unlink", `"node"[port] | "node"`, "pull a cable, or all of a node", (*Console).unlink, false},
		{"Reboot", `"node"`, "take the power from a node and give it back", (*Console).reboot, false},
		{"Error", `"node"[port] percent [attribute]`, "lose packets that come in; 0 ends it", (*Console).loss, false},
		{"PerformanceSet", `"node"[port] Attribute.Counter=value`, "set a performance counter", (*Console).performanceSet, false},
		{"Baselid", `"node"[port] LID [LMC]`, "give an end port an address", (*Console).baseLID, false},
		{"Diag", `"node"[port] code`, "give a port another DiagCode; 1, 2 and 4 take its data away", (*Console).diag, false},
		{"VendorDiag", `"node"[port] INDEX [NextIndex=N] [DiagData="TEXT"|0xDIGITS]`, "put a block of VendorDiag into a port", (*Console).vendorDiag, false},
		{"Noise", `"node"[port] percent`, "let the link change bits of that many data packets that leave there; 0 ends it", (*Console).noise, false},
		{"Reckless", `"node"[port] on|off`, "let a port send data without asking for credits", (*Console).reckless, false},
		{"Withhold", `"node"[port] on|off`, "let a port give no credits for what it receives", (*Console).withhold, false},
		{"Attached", "", "list the clients", (*Console).attached, false},
		{"X", "client", "forget a client", (*Console).expel, false},
		{"Wait", "seconds", "take no commands for so long", (*Console).wait, true},
		{"!", "file", "carry out the commands in a file", nil, true},
		{"#", "...", "a remark", nil, true},
		{"Help", "", "this list; also ?", (*Console).help, true},
		{"Quit", "", "end the simulator", func(*Console, *words) error { return ErrQuit }, true},
	}
}

// absent are commands of ibsim's that are not here, each with the reason.
var absent = map[string]string{
	"start":   "the simulator runs from the beginning",
	"verbose": "there is no log; Attached counts packets",
	"clear":   "a port loses its address by Reboot only; Unlink pulls the cable",
	"guid":    "the GUIDs are those of the topology",
}

// Execute carries out one line.
func (c *Console) Execute(line string) error {
	line = strings.TrimSpace(line)
	if file, ok := strings.CutPrefix(line, "!"); ok {
		return c.file(strings.TrimSpace(file))
	}
	w := &words{rest: line}
	name := strings.ToLower(w.word())
	switch {
	case name == "" || name[0] == '#':
		return nil
	case name == "?":
		name = "help"
	case absent[name] != "":
		return fmt.Errorf("%s is not there: %s", name, absent[name])
	}
	all := c.all()
	i := slices.IndexFunc(all, func(k command) bool { return strings.EqualFold(k.name, name) })
	if i < 0 {
		var known []string
		for _, k := range all {
			known = append(known, k.name)
		}
		return fmt.Errorf("no command %q%s; Help lists them", name, names.DidYouMean(name, known))
	}
	found := all[i]
	if found.outside {
		return found.run(c, w)
	}
	var err error
	if ended := c.server.Do(func(*fabric.Fabric) { err = found.run(c, w) }); ended != nil {
		return ended
	}
	if _, failed := c.text.WriteTo(c.out); failed != nil {
		return failed
	}
	if err != nil && !errors.Is(err, ErrQuit) {
		err = fmt.Errorf("%s: %w; want %s %s", found.name, err, found.name, found.arguments)
	}
	return err
}

// Limits of command files.
const (
	maxCommandFiles = 8       // that call one another
	maxCommandLine  = 1 << 16 // bytes
)

// Run carries out every line of in, and reports on out what could not be done.
// With a prompt it is printed before each line. It returns ErrQuit after Quit,
// and nil at the end of in.
func (c *Console) Run(in io.Reader, prompt string) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxCommandLine)
	for fmt.Fprint(c.out, prompt); lines.Scan(); fmt.Fprint(c.out, prompt) {
		switch err := c.Execute(lines.Text()); {
		case errors.Is(err, ErrQuit), errors.Is(err, errEnded):
			return err
		case err != nil:
			fmt.Fprintln(c.out, "#", err)
		}
	}
	return lines.Err()
}

// file carries out the commands in a file.
func (c *Console) file(name string) error {
	if c.depth == maxCommandFiles {
		return fmt.Errorf("%s: command files call one another more than %d deep", name, maxCommandFiles)
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	c.depth++
	defer func() { c.depth-- }()
	return c.Run(f, "")
}

func (c *Console) wait(w *words) error {
	seconds, err := w.number("seconds", 3600)
	if err != nil {
		return err
	}
	select {
	case <-time.After(time.Duration(seconds) * time.Second):
	case <-c.server.ended:
	}
	return nil
}

func (c *Console) help(*words) error {
	for _, k := range c.all() {
		fmt.Fprintf(c.out, "%-50s %s\n", k.name+" "+k.arguments, k.about)
	}
	return nil
}

func (c *Console) attached(*words) error {
	s := c.server
	for i, k := range s.clients {
		if k == nil {
			continue
		}
		manager := ""
		if k.isSM {
			manager = ", a subnet manager"
		}
		fmt.Fprintf(&c.text, "client %d: at %s[%d]%s: %d packets sent, %d received, %d wait for answers, %d not read, %d lost, %d not understood\n",
			i, k.place.node.ID, k.place.port, manager, k.received, k.sent, k.waiting, k.outbox.count, k.dropped, k.strays)
	}
	fmt.Fprintf(&c.text, "%d control requests refused\n", s.refused)
	return nil
}

func (c *Console) expel(w *words) error {
	n, err := w.number("client", maxClients-1)
	if err != nil {
		return err
	}
	if c.server.clients[n] == nil {
		return fmt.Errorf("no client %d", n)
	}
	c.server.forget(c.server.clients[n])
	return nil
}

// words reads the arguments of a command.
type words struct{ rest string }

// word takes the next word.
func (w *words) word() string {
	w.rest = strings.TrimLeft(w.rest, " \t")
	i := strings.IndexAny(w.rest, " \t")
	if i < 0 {
		i = len(w.rest)
	}
	word := w.rest[:i]
	w.rest = w.rest[i:]
	return word
}

// number takes a number, in C's notation.
func (w *words) number(what string, most uint64) (uint64, error) {
	word := w.word()
	n, err := strconv.ParseUint(word, 0, 64)
	if err != nil || n > most {
		return 0, fmt.Errorf("%s %q: want a number up to %d", what, word, most)
	}
	return n, nil
}

// where takes a node, in quotes or not, with or without a port; port is -1
// without.
func (w *words) where(l *topology.Netlist) (n *topology.Node, port int, err error) {
	w.rest = strings.TrimLeft(w.rest, " \t")
	name, rest := "", w.rest
	if quoted, ok := strings.CutPrefix(rest, `"`); ok {
		if name, rest, ok = strings.Cut(quoted, `"`); !ok {
			return nil, 0, fmt.Errorf("%s: no closing quotation mark", w.rest)
		}
	} else {
		end := strings.IndexAny(rest, " \t[")
		name, rest = rest[:max(end, 0)], rest[max(end, 0):]
		if end < 0 {
			name, rest = rest, ""
		}
	}
	if name == "" {
		return nil, 0, errors.New("no node is named")
	}
	if n, err = l.Find(name); err != nil {
		return nil, 0, err
	}
	port = -1
	if inside, ok := strings.CutPrefix(rest, "["); ok {
		number, after, closed := strings.Cut(inside, "]")
		rest = after
		if port, err = strconv.Atoi(number); err != nil || !closed || port < 0 || port > n.NumPorts() {
			return nil, 0, fmt.Errorf("port [%s of %q: want [0] to [%d]", inside, name, n.NumPorts())
		}
	}
	w.rest = rest
	return n, port, nil
}

// ports are the ports of a node that a command is for: the one that it names,
// or all that can have a cable.
func ports(n *topology.Node, port int) []end {
	if port >= 0 {
		return []end{{n.GUID, ib.PortNum(port)}}
	}
	all := make([]end, 0, n.NumPorts())
	for p := 1; p <= n.NumPorts(); p++ {
		all = append(all, end{n.GUID, ib.PortNum(p)})
	}
	return all
}
