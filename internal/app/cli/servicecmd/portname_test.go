package servicecmd

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestPortNames: a name of a host finds its port, and gives it nothing without consent; two hosts that
// say the same are told apart by GUID or place.
func TestPortNames(t *testing.T) {
	const first, second = "0x0000000000000011", "0x0000000000000012"
	port := func(guid, node string, num int) string {
		return fmt.Sprintf(`{"guid":%q,"owner":"","found":true,"node":%q,"node_guid":"0x01","switch":"0x00000000000000aa","switch_port":%d,"partitions":[]}`, guid, node, num)
	}
	ports := "[" + port(first, "blue-5 HCA-1", 2) + "," + port(second, "blue-6 HCA-1", 3) + "]"
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch path := strings.TrimPrefix(r.URL.Path, "/api/v1"); {
		case path == "/ports":
			fmt.Fprintf(w, `{"items":%s}`, ports)
		case path == "/nodes":
			fmt.Fprint(w, `{"items":[{"guid":"0x00000000000000aa","type":"switch","description":"leaf-1"},{"guid":"0x00000000000000bb","type":"CA","description":"leaf-1"}]}`)
		default:
			var body bytes.Buffer
			body.ReadFrom(r.Body)
			asked = append(asked, r.Method+" "+path+" "+body.String())
			fmt.Fprint(w, `{}`)
		}
	}))
	defer s.Close()
	command := func(stdin string, line ...string) (string, error) {
		asked = nil
		root := &cobra.Command{Use: "ibwarden", SilenceErrors: true, SilenceUsage: true}
		root.AddCommand(Port(), Member())
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetErr(&out)
		root.SetIn(strings.NewReader(stdin))
		root.SetArgs(append(line, "--server", s.URL))
		err := root.Execute()
		return out.String(), err
	}
	for _, x := range []struct {
		line, stdin string
		asks        bool
		sent, fails string
	}{
		{line: "port assign --tenant red --yes leaf-1:2", sent: first},
		{line: "port assign --tenant red --yes 0x00000000000000aa:3", sent: second},
		{line: "port assign --tenant red --yes blue-5", asks: true, fails: "declined"},
		{line: "port assign --tenant red --yes blue-5", stdin: "yes\n", asks: true, sent: first},
		{line: "port release blue-6", stdin: "no\n", asks: true, fails: "declined"},
		{line: "port release 0x12", sent: second},
		{line: "member add 0x21 blue-6=limited", asks: true, fails: "declined"},
		{line: "member remove 0x21 leaf-1:3", sent: ""},
		{line: "port assign --tenant red --yes leaf-1:4", fails: `port "leaf-1:4": want a GUID`},
		{line: "port assign --tenant red --yes spine-1:4", fails: `no switch is called "spine-1"`},
		{line: "port assign --tenant red --yes blue", fails: `port "blue": want a GUID`},
		{line: "port show blue-5 ", sent: first},
	} {
		out, err := command(x.stdin, strings.Fields(x.line)...)
		said := strings.Contains(out, "says of itself")
		switch {
		case said != x.asks:
			t.Errorf("%s: asked for consent to a name: %v\n%s", x.line, said, out)
		case x.fails != "" && (err == nil || !strings.Contains(err.Error(), x.fails)):
			t.Errorf("%s: %v, want %s", x.line, err, x.fails)
		case x.fails != "" && len(asked) > 0:
			t.Errorf("%s: sent %s", x.line, asked)
		case x.fails == "" && err != nil && len(asked) == 0:
			t.Errorf("%s: %v", x.line, err)
		case x.sent != "" && !strings.Contains(strings.Join(asked, "\n"), x.sent):
			t.Errorf("%s: sent %s, want %s", x.line, asked, x.sent)
		}
	}
	// Another host calls itself the same.
	ports = "[" + port(first, "blue-5", 2) + "," + port(second, "blue-5 HCA-1", 3) + "]"
	if _, err := command("yes\n", "port", "assign", "--tenant", "red", "blue-5"); err == nil || !strings.Contains(err.Error(), "2 ports are of a node that says this of itself") || len(asked) > 0 {
		t.Errorf("a name that two hosts have: %v, sent %s", err, asked)
	}
}
