// Package profile is what a simulated device is capable of when nobody says
// otherwise: today's usual table sizes, virtual lanes and lengths, and what the topology
// tells of names, GUIDs and rates.
package profile
