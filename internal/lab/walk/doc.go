// Package walk drives subnet managers on a simulated fabric through what a seed draws, cables,
// devices, policies, administrators and other managers, and keeps what they did as a story
// (package golden).
package walk
