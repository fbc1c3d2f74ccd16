// Package past keeps how a fabric was, for 30 days and in bounded room: the verdict, alarms, who could talk with
// whom, and what cables carried.
//
//	Open    takes up what a directory has
//	Add     enters how the fabric is
//	At      is how it was at a time
//
// What is added is merged into the period of each level that is under way: the worst verdict with what
// goes with it, the highest load of each cable, the most alarms. So a violation of a second is seen 29 days later.
// A level in memory has short periods of the last minutes; those of the others are appended, one piece
// each when a period is over, to files that are removed when the last period in them is too old. After a crash a
// piece at the end of a file may be torn: the file is read up to there, and the next piece begins
// another file. The period of a quarter of an hour that was under way is made again from the minutes in it.
//
// A cable has the same place in every piece, which the file "cables" lists. The place of one that was not seen for
// longer than anything is kept goes to the next cable.
package past
