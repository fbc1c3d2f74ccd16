package cli

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ibwarden/ibwarden/ib/smp"
	"github.com/ibwarden/ibwarden/internal/app/daemon"
	"github.com/ibwarden/ibwarden/internal/manager/sweep"
)

// smInfoPatience bounds how long wantSMInfo looks for a manager.
const smInfoPatience = 2 * time.Minute

// SM-17: the priority of a manager that was given none, as a program sees it that
// asks over the wire.
func TestSM17Priority(t *testing.T) {
	testscript.Run(t, testscript.Params{Files: []string{"testdata/rules/priority.txtar"}, Cmds: scriptCommands()})
}

// wantSMInfo waits until a manager is master on $FABRIC and compares what it says of
// itself: wantsm PRIORITY. It is asked over the wire, like any device.
func wantSMInfo(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: wantsm PRIORITY")
	}
	ctx, stop := context.WithTimeout(context.Background(), smInfoPatience)
	defer stop()
	for ctx.Err() == nil {
		link, err := daemon.Open(ts.Getenv("FABRIC"), 0)
		ts.Check(err)
		r, err := daemon.Read(ctx, link, sweep.Options{Audit: true})
		link.Close()
		ts.Check(err)
		for _, p := range r.Fabric.EndPorts() {
			if !p.SMInfoRead || p.SMInfo.SMState != smp.SMMaster {
				continue
			}
			if got := fmt.Sprint(p.SMInfo.Priority); got != args[0] || p.SMInfo.GUID != p.GUID {
				ts.Fatalf("the manager behind %s says priority %s, GUID %s; want priority %s, GUID %s", p, got, p.SMInfo.GUID, args[0], p.GUID)
			}
			return
		}
		time.Sleep(untilPause)
	}
	ts.Fatalf("no manager is master on %s", ts.Getenv("FABRIC"))
}
