// Package attack reads the catalogue of attacks: scenarios that run once for each
// protection profile, with the expected outcome of the attacker's goals under each.
package attack
