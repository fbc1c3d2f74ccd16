package fabric

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// HardwareNames are the names of the fields of Hardware in text, in order.
var HardwareNames = []string{"metres", "metre", "rate", "switch", "relay", "switch-agent", "host-agent", "send", "receive", "waiting"}

// ParseHardware reads NAME=VALUE,..., where what is not named is as in DefaultHardware:
// metres, rate (Gbit/s) and waiting (packets) are numbers, the rest are durations, as 130ns.
// "default" names nothing. The error names the word that is wrong.
func ParseHardware(text string) (*Hardware, error) {
	h := DefaultHardware()
	if text == "default" {
		return h, nil
	}
	numbers := map[string]*int{"metres": &h.Metres, "rate": &h.Rate, "waiting": &h.Waiting}
	durations := map[string]*time.Duration{
		"metre": &h.Metre, "switch": &h.Switch, "relay": &h.Relay, "switch-agent": &h.SwitchAgent, "host-agent": &h.HostAgent,
		"send": &h.Send, "receive": &h.Receive,
	}
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch {
		case numbers[name] != nil:
			if *numbers[name], err = strconv.Atoi(value); err != nil {
				return nil, fmt.Errorf("%q: want a number", word)
			}
		case durations[name] != nil:
			if *durations[name], err = time.ParseDuration(value); err != nil {
				return nil, fmt.Errorf("%q: want a time, as 130ns", word)
			}
		default:
			return nil, fmt.Errorf("%q: want default, or NAME=VALUE with one of %s", word, strings.Join(HardwareNames, ", "))
		}
		if err := h.check(); err != nil {
			return nil, fmt.Errorf("%q: %w", word, err)
		}
	}
	return h, nil
}
