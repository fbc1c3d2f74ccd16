//go:build linux

package linuxtest

// reason is why rows are not asked. A group's name with a star stands for the rest of the group.
type reason struct{ rows, why string }

// unasked are the rows that speak of an end port, and that this test cannot ask the machine.
var unasked = []reason{
	{"QP-01 VB-02 NI-05 NI-18 NI-27 PI-06 PI-07 MK-02 MK-03", "The adapter has one port."},
	{"QP-08 QP-09 QP-10 QP-11 QP-12 QK-19 QK-20 QK-21", "Linux has no reliable datagrams."},
	{"QP-20 QP-21", "The driver makes no raw queue pairs."},
	{"QP-02 QP-03 QP-14 QK-05 QK-11 QK-13 QK-14 QK-15 VB-03 VB-04 VB-06 VB-07 VB-13 VB-15", "None of Debian's programs makes a queue pair like that, or shows its events; a program of our own would have to run in the machine."},
	{"QP-24", "Why a packet was dropped is not visible: both reasons count alike."},
	{"PI-63", "The programs send no payload above their path's MTU."},
	{"PI-95 PI-101 PI-105", "65,535 refused packets take the machine minutes."},
	{"PI-99 PI-117", "The chip counts soft errors and overruns, and ours has none."},
	{"SV-02 SV-05 VA-05 VA-07 VA-08 VA-11", "The adapter has one data VL."},
	{"VD-06 VD-07 VD-08 VD-09", "Nobody can tell the driver that its adapter is ill."},
	{"LE-01 LE-02 LE-04 LE-05 LE-06", "The adapter has no light."},
}

// others are the rows that speak of something else.
var others = []reason{
	{"SW-* SI-* LF-* RF-* MF-* PK-26 QP-19 NI-19 NI-21 PI-08 PI-09 PI-53 PT-04 PT-05 PT-07 PT-17 PT-18 SV-06 SV-07 SV-08 SV-09 VA-09 VA-10", "Switches and routers."},
	{"PK-01 PK-03 PK-04 PK-27 PK-28 PK-29 PK-30 PK-36 PT-08 PT-12 VA-02 VA-12 AT-08 NI-12 GI-03 GI-07 PI-12 PI-118 PI-119 SM-* NO-02 NO-06 VD-05 VD-10 VD-11 VD-12 VD-14 VD-15 VD-16 LE-07 MK-08", "The manager."},
	{"QK-16 QK-17 PT-09", "What numbers mean, and how many there can be."},
}
