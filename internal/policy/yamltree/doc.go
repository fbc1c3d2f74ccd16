// Package yamltree reads files in YAML that people write, and finds all that is wrong in
// them at once, each fault at its line and column: unknown and repeated keys, values of
// the wrong kind or out of range. Anchors, aliases, tags and further documents are faults
// too, and so is nesting that no such file needs. Nothing is guessed.
package yamltree
