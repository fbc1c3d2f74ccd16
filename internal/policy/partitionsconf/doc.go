// Package partitionsconf reads and writes policies in the format of OpenSM's
// partitions.conf.
//
// In: the bytes of a file. Out: a *policy.Policy, or a *policy.Error with
// every fault of the file. A file is a list of definitions,
//
//	[Name][=P_Key][,flag[=value]]... : member[=membership], ... ;
//
// of which the part up to the colon is on one line. # begins a comment.
// The whole grammar is supported, with OpenSM's meaning: automatic numbers that
// depend on names, definitions that add to an earlier one, the last entry for a
// port decides, words may be abbreviated if unambiguous.
//
// Where OpenSM ignores the file and opens the fabric, guesses, or reads beyond
// the text, Read refuses the file or reads it as written. In particular, if an
// automatic partition earlier in the file would get the P_Key that a later one states,
// Read refuses the file; OpenSM merges the two partitions.
package partitionsconf
