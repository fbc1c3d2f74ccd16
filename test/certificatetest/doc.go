// Package certificatetest holds certificates of isolation, and the checker in verify/, against
// the judges, against packets in the simulated fabric, and against ssh-keygen.
package certificatetest
