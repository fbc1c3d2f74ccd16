package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ibwarden/ibwarden/internal/api/views"
	"github.com/ibwarden/ibwarden/internal/app/telemetry"
)

// TestOnlyTheMasterSendsAlarms: a standby does not look at the alarms, and what takes long is looked at seldom.
func TestOnlyTheMasterSendsAlarms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to, err := telemetry.NewAlertmanagers(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer to.Close()
		s := &Service{alertmanagers: to}
		ctx, stop := context.WithCancel(t.Context())
		asked, takes, ended := 0, time.Duration(0), make(chan bool)
		go func() {
			s.alerts(ctx, func(context.Context) ([]views.Alert, error) {
				asked++
				time.Sleep(takes)
				return nil, errors.New("nothing was read")
			})
			close(ended)
		}()
		for _, x := range []struct {
			master      bool
			takes, time time.Duration
			want        int
		}{
			{false, 0, time.Hour, 0}, {true, 0, time.Minute, 12}, {true, time.Second, 10 * time.Minute, 28}, {true, time.Minute, 10 * time.Minute, 5}, {false, 0, time.Hour, 0},
		} {
			s.master.Store(x.master)
			asked, takes = 0, x.takes
			time.Sleep(x.time)
			if asked < x.want-1 || asked > x.want+1 {
				t.Errorf("%+v: asked %d times", x, asked)
			}
		}
		stop()
		<-ended
	})
}
