// Package operand parses the operands of scenario statements: locations in a topology,
// attributes of ports, and values of their fields.
package operand
