package resource_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ibwarden/ibwarden/internal/resource"
)

// Each tenant acknowledges for itself, for a time, and a few.
func TestAcknowledgements(t *testing.T) {
	b := twoTenants(t)
	alarm := strings.Repeat("0a", 8)
	until := b.at.Add(time.Hour)
	b.refused(resource.NotFound, of("red"), resource.AcknowledgeAlarm{Alarm: alarm})
	for _, bad := range []string{"", "../0000000000000", alarm[:15] + "/"} {
		b.refused(resource.Invalid, of("red"), resource.AcknowledgeAlarm{Alarm: bad, Until: until})
	}
	for _, bad := range []time.Time{b.at, b.at.Add(resource.AcknowledgementLife + time.Second)} {
		b.refused(resource.Invalid, of("red"), resource.AcknowledgeAlarm{Alarm: alarm, Until: bad})
	}
	b.refused(resource.Invalid, of("red"), resource.AcknowledgeAlarm{Alarm: alarm, Until: until, Note: strings.Repeat("x", resource.WhyMax+1)})
	reader := of("red")
	reader.ReadOnly = true
	b.refused(resource.Forbidden, reader, resource.AcknowledgeAlarm{Alarm: alarm, Until: until})
	b.do(of("red"), resource.AcknowledgeAlarm{Alarm: alarm, Until: until, Note: "a fan"})
	if x := b.Acknowledged("red", alarm, b.at); x == nil || x.Note != "a fan" || x.By != of("red").Name || resource.SeesObject(of("blue"), x) || !resource.SeesObject(of("red"), x) {
		t.Errorf("red has %+v", x)
	}
	if x := b.Acknowledged("blue", alarm, b.at); x != nil {
		t.Errorf("blue has %+v", x)
	}
	b.refused(resource.NotFound, of("blue"), resource.AcknowledgeAlarm{Alarm: alarm})
	b.do(of("red"), resource.AcknowledgeAlarm{Alarm: alarm})
	if b.Acknowledged("red", alarm, b.at) != nil {
		t.Error("it is acknowledged still")
	}
	green := resource.PutTenant{Tenant: resource.Tenant{Name: "green", Keys: resource.KeyRange{First: 0x300, Last: 0x3FF}}}
	b.do(provider, green)
	b.do(of("green"), resource.AcknowledgeAlarm{Alarm: alarm, Until: until, Note: "ours"})
	b.do(provider, resource.DeleteTenant{Name: "green"})
	b.do(provider, green)
	if x := b.Acknowledged("green", alarm, b.at); x != nil {
		t.Errorf("a new tenant has what another of its name wrote: %+v", x)
	}
	for i := range resource.AcknowledgementsMax {
		b.do(of("red"), resource.AcknowledgeAlarm{Alarm: fmt.Sprintf("%016x", i), Until: until})
	}
	b.refused(resource.OverQuota, of("red"), resource.AcknowledgeAlarm{Alarm: alarm, Until: until})
	b.at = until
	if b.Acknowledged("red", fmt.Sprintf("%016x", 1), b.at) != nil {
		t.Error("its time is over")
	}
	b.do(provider, resource.Trim{})
	b.do(of("red"), resource.AcknowledgeAlarm{Alarm: alarm, Until: until.Add(time.Hour)})
}
