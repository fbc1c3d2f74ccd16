// Package operand reads what the statements of a script are about: places in a
// topology, attributes of ports, and values of their fields.
package operand
