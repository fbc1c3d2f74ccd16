// Package simcmd is `ibwarden sim`: it serves a simulated fabric, runs commands
// inside one, and runs stories.
package simcmd
