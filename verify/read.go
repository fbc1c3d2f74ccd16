package main

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// forms are the lines of a certificate in their order: the word that a line begins with, and
// what follows. Words in capitals stand for values. Of each of the first once there is one
// line, of the others any number; those of one kind are in the order of their text, but keys
// and class, which are in that of their numbers.
var forms = []struct{ word, form string }{
	{"ibwarden", "certificate 1"},
	{"made", "TIME"},
	{"expires", "TIME"},
	{"revision", "NUMBER"},           // of the policy in the service; 0 for none
	{"snapshot", "DIGEST"},           // of the file that the facts were read from
	{"policy", "DIGEST"},             // of the policy as YAML
	{"raw", "RAW"},                   // whether the policy allows raw packets
	{"partition", "KEY TEXT"},        // of the policy
	{"keys", "NUMBER KEYS"},          // a set of P_Keys, to which other lines refer by its number
	{"class", "NUMBER ports=NUMBER"}, // the claim: end ports to which the policy gives this set
	{"switch", "GUID ports=NUMBER entries=COUNT enforces=WAYS filters=WAYS key=GUARD protect=LEVEL lease=COUNT name=TEXT"},
	{"port", "PLACE state=COUNT enforce=WAYS filter=WAYS keys=TABLE"},
	{"end", "GUID node=GUID port=PORT type=TYPE keys=TABLE class=NUMBER key=GUARD protect=LEVEL lease=COUNT name=TEXT"},
	{"cable", "PLACE PLACE LISTED"},
	{"unread", "GUID TEXT"}, // what else is not known of a device
}

const once = 7

// values are what the words in capitals stand for.
var values = strings.NewReplacer(
	"TIME", `(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)`, "NUMBER", `(0|[1-9]\d{0,17})`, "DIGEST", `(-|[0-9a-f]{64})`, "RAW", `(denied|allowed)`,
	"KEYS", `(-|[0-9a-f]{4}(?: [0-9a-f]{4})*)`, "KEY", `([0-9a-f]{4})`, "TEXT", `([!-~]+)`, "GUID", `(0x[0-9a-f]{16})`, "PORT", `(\d{3})`, "PLACE", `(0x[0-9a-f]{16} \d{3})`,
	"COUNT", `(unread|0|[1-9]\d{0,5})`, "LEVEL", `(unread|[0-3])`, "WAYS", `(unread|no|in|out|both)`, "GUARD", `(unread|own|shared|weak|none|hidden)`,
	"TABLE", `(unread|none|0|[1-9]\d{0,8})`, "LISTED", `(listed|unlisted)`, "TYPE", `(ca|router|switch)`)

// key is a P_Key: 15 bits that name the partition, and bit 15 of full members.
type key uint16

const full key = 0x8000

func (k key) base() key { return k &^ full }

// certificate is what a file says. Words that stand for what was not read stay words.
type certificate struct {
	made, expires, revision string
	rawAllowed              bool
	names                   map[key]string // of partitions
	sets                    [][]key        // each ascending by partition, one key for each
	used                    []bool         // sets that some line refers to
	lastKeys                string         // the text of the last set
	classes                 map[int]int    // the claim: the number of end ports, by the set of the class
	lastClass               int
	switches                map[string]*device
	ports                   map[place]*port // external ports of switches
	inOrder                 []place         // those, as they come
	ends                    []*end
	at                      map[place]*end
	cables                  []cable
	peer                    map[place]place
	unread                  [][2]string // a device, and what is not known of it
}

// place is a port of a device: the GUID of the device, a space, and three digits.
type place string

func (p place) node() string { return string(p[:len(p)-4]) }

func (p place) num() string { return string(p[len(p)-3:]) }

// device is a switch: what it can check, and how its M_Key guards it.
type device struct {
	guid, ports, entries, enforces, filters, key, protect, lease, name string
	listed                                                             int // how many of its ports are there
}

// port is an external port of a switch. keys is the number of a set, or less than 0.
type port struct {
	state, enforce, filter string
	keys                   int
}

// end is an end port: of a CA or router, or port 0 of a switch.
type end struct {
	guid, kind, name string
	at               place
	keys, class      int
}

type cable struct {
	a, b   place
	listed bool
}

// parse reads a certificate. It takes one spelling of each fact, and nothing else.
func parse(data []byte) (*certificate, error) {
	const sumLine = len("sha256 ") + 2*sha256.Size + 1
	body := data[:max(0, len(data)-sumLine)]
	if string(data[len(body):]) != fmt.Sprintf("sha256 %x\n", sha256.Sum256(body)) {
		return nil, fmt.Errorf("the last line is not the SHA-256 of what stands before: it was changed, or cut short")
	}
	lines := func(word string) int { return strings.Count(string(body), "\n"+word+" ") }
	c := &certificate{
		names: map[key]string{}, classes: map[int]int{}, switches: map[string]*device{}, ports: make(map[place]*port, lines("port")),
		at: make(map[place]*end, lines("end")), peer: make(map[place]place, 2*lines("cable")),
	}
	var form *regexp.Regexp
	kind, last, number := -1, "", 0
	for text := string(body); len(text) > 0; {
		line, rest, whole := strings.Cut(text, "\n")
		text, number = rest, number+1
		word, _, _ := strings.Cut(line, " ")
		for kind < 0 || kind < once || forms[kind].word != word {
			if kind++; kind == len(forms) {
				return nil, fmt.Errorf("line %d: %q is not expected here", number, word)
			}
			form, last = regexp.MustCompile("^"+forms[kind].word+" "+values.Replace(forms[kind].form)+"$"), ""
			if kind < once {
				break
			}
		}
		found := form.FindStringSubmatch(line)
		if found == nil || !whole {
			return nil, fmt.Errorf("line %d: want %s %s", number, forms[kind].word, forms[kind].form)
		}
		if word != "keys" && word != "class" && line <= last {
			return nil, fmt.Errorf("line %d is not in order", number)
		}
		last = line
		if err := c.enter(word, found[1:]); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	if kind < once-1 {
		return nil, fmt.Errorf("there is no line %s", forms[kind+1].word)
	}
	return c, c.joined()
}

// enter takes the values of one line.
func (c *certificate) enter(word string, f []string) error {
	switch word {
	case "made":
		c.made = f[0]
	case "expires":
		c.expires = f[0]
	case "revision":
		c.revision = f[0]
	case "raw":
		c.rawAllowed = f[0] == "allowed"
	case "partition":
		k := keyOf(f[0])
		if c.names[k] != "" || k.base() == 0 || k != k.base() {
			return fmt.Errorf("partition %s: want each once, of 15 bits", f[0])
		}
		c.names[k] = f[1]
	case "keys":
		return c.enterKeys(f[0], f[1])
	case "class":
		n, err := c.set(f[0])
		if _, twice := c.classes[n]; err != nil || twice || n < c.lastClass {
			return fmt.Errorf("class %s: want sets of keys in order, each once", f[0])
		}
		c.lastClass = n
		c.classes[n], err = strconv.Atoi(f[1])
		return err
	case "switch":
		if c.switches[f[0]] != nil {
			return fmt.Errorf("switch %s is there twice", f[0])
		}
		c.switches[f[0]] = &device{f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8], 0}
	case "port":
		at := place(f[0])
		keys, err := c.set(f[4])
		d := c.switches[at.node()]
		if err != nil || d == nil {
			return fmt.Errorf("want an external port of a switch above, and a set of keys above")
		}
		if d.listed++; at.num() != fmt.Sprintf("%03d", d.listed) { // one that is left out would be one that nothing is known of
			return fmt.Errorf("want port %d of switch %s", d.listed, d.guid)
		}
		c.ports[at], c.inOrder = &port{f[1], f[2], f[3], keys}, append(c.inOrder, at)
	case "end":
		e := &end{guid: f[0], at: place(f[1] + " " + f[2]), kind: f[3], name: f[9]}
		var err, err2 error
		e.keys, err = c.set(f[4])
		e.class, err2 = c.set(f[5])
		isSwitch := c.switches[e.at.node()] != nil
		if err != nil || err2 != nil || c.at[e.at] != nil || isSwitch != (e.kind == "switch") || isSwitch != (e.at.num() == "000") {
			return fmt.Errorf("want each end port once, sets of keys above, and port 000 for that of a switch above")
		}
		c.ends, c.at[e.at] = append(c.ends, e), e
	case "cable":
		x := cable{place(f[0]), place(f[1]), f[2] == "listed"}
		_, twiceA := c.peer[x.a]
		_, twiceB := c.peer[x.b]
		if twiceA || twiceB || f[0] >= f[1] {
			return fmt.Errorf("want each port once, the lower first")
		}
		c.cables, c.peer[x.a], c.peer[x.b] = append(c.cables, x), x.b, x.a
	case "unread":
		c.unread = append(c.unread, [2]string{f[0], f[1]})
	}
	return nil
}

func keyOf(text string) key {
	n, _ := strconv.ParseUint(text, 16, 16) // its form was checked
	return key(n)
}

// enterKeys takes a set of keys.
func (c *certificate) enterKeys(number, text string) error {
	var set []key
	for _, word := range strings.Fields(strings.TrimPrefix(text, "-")) {
		k := keyOf(word)
		if k.base() == 0 || len(set) > 0 && k.base() <= set[len(set)-1].base() {
			return fmt.Errorf("want one key for each partition, ascending")
		}
		set = append(set, k)
	}
	if n := len(c.sets); number != strconv.Itoa(n) {
		return fmt.Errorf("want keys %d", n)
	}
	if text <= c.lastKeys {
		return fmt.Errorf("want the sets in the order of their text, each once")
	}
	c.sets, c.used, c.lastKeys = append(c.sets, set), append(c.used, false), text
	return nil
}

// set is the number of a set of keys, less than 0 where there is no table or it was not read.
func (c *certificate) set(text string) (int, error) {
	if text == "none" || text == "unread" {
		return -1, nil
	}
	n, err := strconv.Atoi(text)
	if err == nil && n >= len(c.sets) {
		err = fmt.Errorf("there is no set %d", n)
	}
	if err == nil {
		c.used[n] = true
	}
	return n, err
}

// joined checks what lines say of each other.
func (c *certificate) joined() error {
	for i, used := range c.used {
		if !used {
			return fmt.Errorf("nothing has keys %d", i)
		}
	}
	counts := map[int]int{}
	for _, e := range c.ends {
		counts[e.class]++
		for _, k := range c.sets[e.class] {
			if c.names[k.base()] == "" {
				return fmt.Errorf("the policy has no partition %04x", k.base())
			}
		}
	}
	if !maps.Equal(counts, c.classes) {
		return fmt.Errorf("the end ports are not as many in each class as is claimed")
	}
	for guid, d := range c.switches {
		if strconv.Itoa(d.listed) != d.ports || c.at[place(guid+" 000")] == nil {
			return fmt.Errorf("switch %s: want the ports 0 to %s", guid, d.ports)
		}
	}
	for at := range c.peer {
		if c.switches[at.node()] != nil && c.ports[at] == nil { // port 0, that of management, has no cable
			return fmt.Errorf("of port %s, where a cable ends, nothing is said", at)
		}
	}
	return nil
}
