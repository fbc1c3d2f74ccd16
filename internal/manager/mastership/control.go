package mastership

import "github.com/ibwarden/ibwarden/ib/smp"

// SentControl describes the kind of a control packet.
func SentControl(modifier uint32) string {
	if name, ok := controlNames[smp.SMControl(modifier)]; ok {
		return "it sent " + name
	}
	return "it sent a control packet that does not exist"
}

var controlNames = map[smp.SMControl]string{
	smp.SMControlHandover: "HANDOVER", smp.SMControlAcknowledge: "ACKNOWLEDGE", smp.SMControlDisable: "DISABLE",
	smp.SMControlStandby: "STANDBY", smp.SMControlDiscover: "DISCOVER",
}
