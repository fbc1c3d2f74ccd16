// Package certificatetest holds certificates of isolation, and the checker in verify/, against
// the proof of its rules, the judges, packets in the simulated fabric, and ssh-keygen.
package certificatetest
