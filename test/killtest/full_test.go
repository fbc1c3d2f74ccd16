package killtest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ibwarden/ibwarden/ib"
	"github.com/ibwarden/ibwarden/test/storetest"
)

// TestFullDirectory kills a manager, and starts it again where nothing can be written to a
// file. It runs: a host that loses its tables gets them back, what is stored can be read,
// and a change is refused with the reason. As soon as there is room changes are taken.
func TestFullDirectory(t *testing.T) {
	for _, store := range []string{"file", "etcd"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			var flags []string
			if store == "etcd" {
				flags = []string{"--store", "etcd:" + strings.Join(storetest.StartEtcd(t).Endpoints(), ",")}
			}
			r := w.place(0, flags...)
			r.start()
			const key = ib.PKey(0x80f0)
			c := &client{runner: r}
			hosts := []int{len(w.hosts) - 2, len(w.hosts) - 1}
			members := []js{}
			for _, i := range hosts {
				members = append(members, js{"port": w.hosts[i].Ports[1].GUID.String(), "membership": "full"})
			}
			w.eventually("the partition is made", func() error {
				a, err := r.try("PUT", "/partitions/0x00f0?wait=proved", js{"name": "kept", "members": members}, nil)
				if err == nil && a.status >= http.StatusMultipleChoices {
					err = fmt.Errorf("%d %v", a.status, a.body)
				}
				return err
			})
			r.kill()

			r.program = nothingFits(t, r.path())
			r.start()
			w.console.Execute(fmt.Sprintf("Reboot %q", w.hosts[hosts[0]].ID))
			w.eventually("a host that was off has its key back", func() error {
				if all := w.keys(); !all[hosts[0]][key] || !all[hosts[1]][key] {
					return fmt.Errorf("%v, %v", all[hosts[0]], all[hosts[1]])
				}
				return nil
			})
			if got, _, err := c.look(); err != nil || len(got["0x00f0"].members) != len(hosts) {
				t.Errorf("what is stored: %v, %v", got, err)
			}
			change := func(name string) (answer, error) {
				return r.try("PUT", "/partitions/0x00f1", js{"name": name}, nil)
			}
			if store == "file" {
				a, err := change("refused")
				if err != nil || a.status < 500 || !strings.Contains(fmt.Sprint(a.body), "full") {
					t.Errorf("a change: %d %v, %v; want that the disk is full", a.status, a.body, err)
				}
				if a := r.get("/status"); !strings.Contains(said(a), "full") {
					t.Errorf("GET /status: %v", a.body)
				}
			}
			for _, file := range []string{"keys.json", "state.json"} {
				if text := r.log.String(); !slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
					return strings.Contains(line, file) && strings.Contains(line, unix.EFBIG.Error()) && !strings.Contains(line, "INFO")
				}) {
					t.Errorf("no warning that %s could not be written:\n%s", file, text)
				}
			}

			room := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
			if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &room); err != nil {
				t.Fatal(err)
			}
			room.Cur = room.Max
			if err := unix.Prlimit(r.cmd.Process.Pid, unix.RLIMIT_FSIZE, &room, nil); err != nil {
				t.Fatal(err)
			}
			w.eventually("there is room again, and a change is taken", func() error {
				a, err := change("taken")
				if err == nil && a.status >= http.StatusMultipleChoices {
					err = fmt.Errorf("%d %v", a.status, a.body)
				}
				return err
			})
		})
	}
}

// nothingFits is a program in whose place no file may grow: what it writes fails as on a disk that
// is full.
func nothingFits(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(path, fmt.Appendf(nil, "#!/bin/sh\nulimit -S -f 0\nexec '%s' \"$@\"\n", program), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
