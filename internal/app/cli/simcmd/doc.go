// Package simcmd implements `ibwarden sim`: it serves a simulated fabric, runs commands
// inside one, and runs scenarios.
package simcmd
