// Package attack reads the stories of the catalogue of attacks: a script that
// is run once for each profile of protection, and what is to become of the
// attacker's goals under each.
package attack
