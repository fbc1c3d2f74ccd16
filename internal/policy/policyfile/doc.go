// Package policyfile reads and writes policies, in YAML or in the format of OpenSM's
// partitions.conf, and converts one format into the other.
//
// In: the bytes of a file. Out: a *policy.Policy, or a *policy.Error with every fault of
// the file. A conversion keeps the meaning: on any fabric, the policy before and the policy
// after resolve to the same members.
//
// # YAML
//
// Every fault of a file is found at once, each at its line and column: unknown and repeated
// keys, values of the wrong kind or out of range, names of nothing. Anchors,
// aliases, tags and further documents are faults too. The search for faults goes on
// after each, except after a YAML syntax error.
//
//	version: 1
//	default: limited        # or full: what every port is in the default partition; none: no port is in it
//	allow_both: false       # let a port hold both keys of a partition
//	raw: deny               # or allow: packets without a P_Key, which go to everybody
//	descriptions: trusted   # without it selectors by description are refused
//	may_be_absent: false    # no warning about selectors that find no port
//	trusted: [{at: "leaf-1:1"}]  # ports that may ask subnet administration for everything
//	settings:               # of links and devices, docs/settings.md; any of them may be left out
//	  packet_life_time: 18
//	  qos_levels: [{sl: 1, share: 30%}]
//	  links: [{at: "leaf-1:5", width: 1x, speed: sdr}]
//	groups:
//	  red: ["red-*"]        # descriptions, exact or with * ? [a-z] \
//	  blue: {ports: [{at: "leaf-1:3"}], may_be_absent: true}
//	  storage: [{port: 0x0002c90300a1b2c3}, {node: 0x0002c90300a1b2c0}]
//	aliases:                # further GUIDs of ports; without it they are left alone
//	  - port: 0x0002c90300a1b2c3
//	    guids: [0x0202c90300000001, 0, 0x0202c90300000002]  # entries 1, 2, 3; 0: empty
//	apart: [0x0002c90300000007, 0x0200000000000000-0x0200000000ffffff]  # ports that nothing but their GUID means
//	partitions:
//	  - name: red
//	    pkey: 0x0010        # 1 to 0x7fff; left out: allocated, and then kept
//	    sl: 0
//	    rate_limit: 25      # Gb/s
//	    service_ids: [{id: iser, sl: 1}, {id: 0x100-0x1ff, sl: 0}]
//	    index0: false       # put the key at index 0 of the members' tables
//	    members:            # the more specific selector decides, then limited
//	      full: [storage, 0x0002c90300000001, {description: "node 1"}]
//	      limited: [red, ALL_ROUTERS]
//	      both: []
//	    ipoib: {mtu: 4096, rate: 100, sl: 0, scope: link, qkey: 0xb1b, tclass: 0, flow_label: 0}
//	    multicast: [{mgid: "ff12:401b::16", mtu: 4096, rate: 100}]
//	services:               # a partition for each tenant: disks/red, disks/blue
//	  - name: disks
//	    pkey: 0x0030        # its partitions get numbers from here up; left out: from 0x0001
//	    pkeys: {blue: 0x0040}   # or the number that is stated
//	    offered_by: [storage]   # full members of each
//	    to: [red, blue]     # partitions or groups, whose members are limited members of their own
//	    sl: 0
//	    ipoib: true
//
// A member is a group's name, a port GUID, one of the keywords ALL, ALL_CAS,
// ALL_SWITCHES, ALL_ROUTERS and SELF, a description with a wildcard, or one of
// {port: }, {node: }, {description: }, {group: }, {at: "SWITCH:PORT"}, the port
// that is cabled to that port of a switch with that name or node GUID, and
// {port: , at: }, the port with the GUID if it is cabled there. Members may also be an
// ordered list, of which the last entry that selects a port decides:
//
//	members:
//	  - {as: full, ports: [ALL]}
//	  - {as: limited, ports: [red], index0: true}
//
// An alias GUID has the local bit, 0x0200000000000000, and belongs to one
// port; as a member it means that port. aliases: [] keeps every GUID table
// empty except for the port's own GUID.
//
// What stands in apart, GUIDs and ranges of them, is selected by GUID alone, not by
// keywords, groups, nodes, patterns or places, and is at most a limited member of the
// default partition unless that names it. The service writes it for the ports of
// tenants.
//
// MTU is in bytes, rate in Gb/s; scope is link, site, organization, global or
// a number. ipoib: true takes the defaults.
//
// YAMLTree reads files in YAML that people write, and finds all that is wrong in
// them at once, each fault at its line and column: unknown and repeated keys, values of
// the wrong kind or out of range. Anchors, aliases, tags and further documents are faults
// too, and so is nesting that no such file needs. Nothing is guessed.
//
// # partitions.conf
//
// OpenSM's format is a list of definitions,
//
//	[Name][=P_Key][,flag[=value]]... : member[=membership], ... ;
//
// of which the part up to the colon is on one line. # begins a comment.
// The whole grammar is supported, with OpenSM's meaning: automatic numbers that
// depend on names, definitions that add to an earlier one, the last entry for a
// port decides, words may be abbreviated if unambiguous.
//
// Where OpenSM ignores the file and opens the fabric, guesses, or reads beyond
// the text, ReadConf refuses the file or reads it as written. In particular, if an
// automatic partition earlier in the file would get the P_Key that a later one states,
// ReadConf refuses the file; OpenSM merges the two partitions.
package policyfile
