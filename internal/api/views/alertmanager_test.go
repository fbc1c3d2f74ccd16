package views

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ibwarden/ibwarden/internal/observed/subnettest"
)

// TestAlertOf: labels do not change with the time and with who knows of an alarm, and text that devices name is one bounded line
// of an annotation, never a label.
func TestAlertOf(t *testing.T) {
	b := subnettest.New()
	b.ManagedFrom(b.Host(b.Switch(4, "leaf"), "manager"))
	b.Fabric.Self.Info.GIDPrefix = 0xfe80000000000000
	evil := "evil\n\x1b[31m\u202e{{ .x }}</a>\xff" + strings.Repeat("ü", 600)
	var many []string
	for i := range 1000 {
		many = append(many, fmt.Sprint("tenant-", i))
	}
	now := time.Now()
	for _, x := range []Alarm{
		{Kind: "port", Severity: "medium", Where: evil, Text: evil, Advice: evil, Ports: []string{"0x1"}, Tenants: []string{"red"}, ID: "0123456789abcdef"},
		{Kind: "violation", Severity: "critical", Where: evil, Text: evil, PKey: "0x8001", Ports: many, Tenants: many, ID: "0123456789abcdef"},
		{Kind: "verdict", Severity: "high", Where: "the fabric", Text: evil, ID: "0123456789abcdef"},
	} {
		a := AlertOf(x, b.Fabric, "https://h/console/", now, now)
		x.Acknowledged = &Acknowledged{By: evil, At: now, Until: now, Note: evil}
		later := AlertOf(x, b.Fabric, "", now, now.Add(time.Hour))
		if !maps.Equal(a.Labels, later.Labels) || !strings.HasPrefix(later.Annotations["acknowledged"], "by evil ") {
			t.Errorf("%v and then %v, %v", a.Labels, later.Labels, later.Annotations)
		}
		if one := len(x.Ports) == 1; (a.Labels["guid"] != "") != one || (a.Labels["tenant"] != "") != one || a.Labels["subnet_prefix"] != "0xfe80000000000000" {
			t.Errorf("labels %v", a.Labels)
		}
		if text := fmt.Sprint(a.Labels); strings.Contains(text, "evil") {
			t.Errorf("labels %s", text)
		}
		if a.EndsAt.Sub(a.StartsAt) != AlertLife || a.GeneratorURL != "https://h/console/" {
			t.Errorf("%+v", a)
		}
		for name, text := range later.Annotations {
			if len(text) > alertTextMost || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
				t.Errorf("%s is %q", name, text)
			}
		}
		if data, err := json.Marshal(a); err != nil || len(data) > 4096 {
			t.Errorf("%d bytes, %v", len(data), err)
		}
	}
	if _, there := AlertOf(Alarm{Kind: "port"}, subnettest.New().Fabric, "", now, now).Labels["subnet_prefix"]; there {
		t.Error("a prefix that is not known")
	}
}

// TestSince: an alarm keeps its beginning for as long as it is told of, for each tenant.
func TestSince(t *testing.T) {
	var s Since
	x, y, at := Alarm{ID: "x"}, Alarm{ID: "y"}, time.Unix(1000, 0)
	s.Began("red", []Alarm{x}, at)
	if got := s.Began("red", []Alarm{x, y}, at.Add(1)); !got["x"].Equal(at) || !got["y"].Equal(at.Add(1)) {
		t.Errorf("%v", got)
	}
	if got := s.Began("blue", []Alarm{x}, at.Add(2)); !got["x"].Equal(at.Add(2)) {
		t.Errorf("another tenant: %v", got)
	}
	s.Began("red", nil, at.Add(3))
	if got := s.Began("red", []Alarm{x}, at.Add(4)); !got["x"].Equal(at.Add(4)) {
		t.Errorf("one that came back: %v", got)
	}
}
