// Command verify checks a certificate of isolation that ibwarden wrote. It uses nothing of
// ibwarden and nothing but Go's standard library: read.go reads the facts and the claim,
// check.go has the rules by which the claim follows from the facts, or does not.
//
//	go run . FILE
//
// Exit status 0: yes, the claim holds. 1: no, with the witness. 2: the facts do not say, or
// the file is no certificate, or has expired. Who made the file is not checked here but by
// ssh-keygen -Y verify, with the signature beside it.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"time"
)

// fileMax is the most bytes of a certificate that are read.
const fileMax = 256 << 20

// Exit statuses.
const (
	yes     = 0
	no      = 1
	unknown = 2
)

func main() {
	debug.SetGCPercent(400) // all that is read stays in use
	os.Exit(run(os.Args[1:], time.Now(), os.Stdout))
}

func run(args []string, now time.Time, out io.Writer) int {
	c, err := load(args)
	if err != nil {
		fmt.Fprintln(out, "unknown:", err)
		return unknown
	}
	v := check(c)
	made, err := time.Parse(timeForm, c.made)
	switch expires := made.Add(life); {
	case err != nil || c.expires != expires.Format(timeForm):
		v.doubt("the certificate was made at %s and expires at %s: want %v between them", c.made, c.expires, life)
	case now.Before(made):
		v.doubt("the certificate was made at %s, which is still to come", c.made)
	case !now.Before(expires):
		v.doubt("the certificate expired at %s", c.expires)
	}
	return v.report(c, out)
}

// life is how long a certificate is valid: longer ago, nobody knows what the fabric is now.
const life = 7 * 24 * time.Hour

// timeForm is how times are written.
const timeForm = "2006-01-02T15:04:05Z"

func load(args []string) (*certificate, error) {
	if len(args) != 1 {
		return nil, fmt.Errorf("want one argument, the file of a certificate")
	}
	f, err := os.Open(args[0])
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, fileMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > fileMax {
		return nil, fmt.Errorf("%s: more than %d bytes", args[0], fileMax)
	}
	c, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s is no certificate: %w", args[0], err)
	}
	return c, nil
}

// report prints the verdict, and returns the exit status. What is wrong comes before what is
// not known: no read could make it right.
func (v *verdict) report(c *certificate, out io.Writer) int {
	for _, s := range v.no {
		fmt.Fprintln(out, "no:", s)
	}
	for _, s := range v.unknown {
		fmt.Fprintln(out, "unknown:", s)
	}
	switch {
	case len(v.no) > 0:
		return no
	case len(v.unknown) > 0:
		return unknown
	}
	fmt.Fprintf(out, "yes: %d end ports in %d classes at %d switches, fabric read %s, revision %s\n",
		len(c.ends), len(c.classes), len(c.switches), c.made, c.revision)
	if c.rawAllowed {
		fmt.Fprintln(out, "raw packets, which have no P_Key, are not claimed to be kept apart: the policy allows them")
	}
	fmt.Fprintln(out, "management packets on VL 15 are not part of the claim")
	return yes
}
