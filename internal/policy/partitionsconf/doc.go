// Package partitionsconf reads and writes policies in the format of OpenSM's
// partitions.conf.
//
// In: the octets of a file. Out: a *policy.Policy, or a *policy.Error with
// every fault of the file. A file is a list of definitions,
//
//	[Name][=P_Key][,flag[=value]]... : member[=membership], ... ;
//
// of which the part up to the colon stands on one line. # begins a comment.
// The whole grammar is read, with OpenSM's meaning: automatic numbers that
// belong to names, definitions that add to an earlier one, the last word on a
// port deciding, prefixes of words where only one word fits.
//
// Where OpenSM drops the file and opens the fabric, guesses, or reads what is
// not there, Read refuses the file or reads it as written. In particular a
// stated P_Key that an automatic partition before it would get is refused,
// where OpenSM merges the two partitions.
package partitionsconf
