package scenario_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/sim/fabric"
	"github.com/ibwarden/ibwarden/test/need"
)

// captured runs stories and gives the capture file of them all, and how many data
// packets left the nodes that sent them.
func captured(t *testing.T, texts map[string]string, names []string) (file []byte, data int) {
	t.Helper()
	var b bytes.Buffer
	r, err := fabric.NewRecorder(&b, time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		s, err := compile(name, texts[name])
		if err != nil {
			t.Fatal(err)
		}
		s.Watch(fabric.Config{Trace: r.Management, DataTrace: func(seen fabric.DataSighting) {
			if seen.Origin {
				data++
			}
			r.Data(seen)
		}})
		report, err := s.Run()
		if err != nil || !report.Good() || r.Err() != nil {
			t.Fatalf("%s: %v, %v", name, err, r.Err())
		}
	}
	return b.Bytes(), data
}

// Data packets of every service are in captures, the same bytes each time, and
// tshark reads each packet.
func TestCaptures(t *testing.T) {
	tshark := need.Program(t, "tshark")
	texts, names := stories(t), []string{"queue-pairs.ibs", "raw-filters.ibs", "uc", "enforcement.ibs"}
	texts["uc"] = "fabric star.topology\nrule PK-12\nbring-up\nqp R on A service=UC\nqp S on B service=UC\nconnect R S\n" +
		"send R -> S bytes=600\nexpect received S 1 bytes=600"
	file, data := captured(t, texts, names)
	if again, _ := captured(t, texts, names); !bytes.Equal(file, again) {
		t.Error("the second run's capture differs")
	}
	path := filepath.Join(t.TempDir(), "stories.pcap")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tshark, "-r", path, "-T", "fields", "-e", "infiniband.lrh.lnh",
		"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "_ws.malformed").Output()
	if err != nil {
		t.Fatal(err)
	}
	opcodes, found := map[string]int{}, 0
	for i, line := range strings.Split(strings.TrimSuffix(string(out), "\n"), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 4 || f[0] == "" || f[3] != "" {
			t.Errorf("packet %d: tshark reads %q", i+1, line)
			continue
		}
		if f[2] != "0x000000" { // not QP0
			opcodes[f[1]]++
			found++
		}
	}
	if found != data {
		t.Errorf("tshark finds %d data packets, %d were sent", found, data)
	}
	for opcode, what := range map[string]string{"100": "UD", "4": "RC", "17": "RC acknowledge", "32": "UC", "68": "RD", "": "raw"} {
		if opcodes[opcode] == 0 {
			t.Errorf("no packet of %s (opcode %q): %v", what, opcode, opcodes)
		}
	}
}
