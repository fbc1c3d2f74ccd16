package resource

import (
	"maps"
	"regexp"
	"slices"
	"time"
)

// Acknowledgement says of an alarm that somebody of a tenant knows of it. The alarm goes on.
type Acknowledgement struct {
	Tenant string `json:"tenant"`
	// Alarm is the ID of the alarm: 16 hexadecimal digits.
	Alarm string    `json:"alarm"`
	By    string    `json:"by"`
	Note  string    `json:"note,omitempty"`
	At    time.Time `json:"at"`
	Until time.Time `json:"until"`
}

// Key implements Object.
func (x *Acknowledgement) Key() string { return AcknowledgementKey(x.Tenant, x.Alarm) }

// AcknowledgementKey is the key of a tenant's acknowledgement of an alarm.
func AcknowledgementKey(tenant, alarm string) string {
	return key(KindAcknowledgement, tenant+"/"+alarm)
}

// Acknowledged is a tenant's acknowledgement of an alarm at a time; nil for none.
func (s *State) Acknowledged(tenant, alarm string, at time.Time) *Acknowledgement {
	if x := s.acknowledged[tenant][alarm]; x != nil && at.Before(x.Until) {
		return x
	}
	return nil
}

// Acknowledgements are those of a tenant, ordered by alarm; some may have ended.
func (s *State) Acknowledgements(tenant string) (list []*Acknowledgement) {
	of := s.acknowledged[tenant]
	for _, alarm := range slices.Sorted(maps.Keys(of)) {
		list = append(list, of[alarm])
	}
	return list
}

// AcknowledgeAlarm acknowledges an alarm for the caller's tenant until a time, or ends that where
// Until is zero. That there is such an alarm is for the caller of Plan to know.
type AcknowledgeAlarm struct {
	Alarm string    `json:"alarm"`
	Title string    `json:"title"` // what the alarm says, for the history
	Note  string    `json:"note,omitempty"`
	Until time.Time `json:"until"`
}

// Action implements Change.
func (AcknowledgeAlarm) Action() string { return "acknowledge alarm" }

var goodAlarm = regexp.MustCompile(`^[0-9a-f]{16}$`)

func (c AcknowledgeAlarm) plan(d *draft) error {
	x := &Acknowledgement{Tenant: d.By.Tenant, Alarm: c.Alarm, By: d.By.Name, Note: c.Note, At: d.At, Until: c.Until}
	old := d.acknowledged[x.Tenant][x.Alarm]
	switch {
	case !goodAlarm.MatchString(c.Alarm):
		return refuse(Invalid, "alarm", "%q: want the ID of an alarm, 16 hexadecimal digits", c.Alarm)
	case len(c.Note) > WhyMax || len(c.Title) > WhyMax:
		return refuse(Invalid, "note", "%d bytes: want at most %d", max(len(c.Note), len(c.Title)), WhyMax)
	case c.Until.IsZero() && old == nil:
		return refuse(NotFound, "alarm", "alarm %s is not acknowledged", c.Alarm)
	case c.Until.IsZero():
		d.remove(old.Key())
		d.say(old.Key(), "%s: no longer acknowledged", c.Title)
		return nil
	case !c.Until.After(d.At) || c.Until.Sub(d.At) > AcknowledgementLife:
		return refuse(Invalid, "until", "%s: want a time within the next %d days", c.Until.UTC().Format(time.RFC3339), int(AcknowledgementLife/(24*time.Hour)))
	case old == nil && len(d.acknowledged[x.Tenant]) >= AcknowledgementsMax:
		return refuse(OverQuota, "", "tenant %s has acknowledged %d alarms: want at most %d", x.Tenant, AcknowledgementsMax, AcknowledgementsMax)
	}
	d.put(x)
	d.say(x.Key(), "%s: acknowledged until %s", c.Title, c.Until.UTC().Format("2006-01-02 15:04"))
	return nil
}
