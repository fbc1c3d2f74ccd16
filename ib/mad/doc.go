// Package mad codes the 256-octet management datagram: the common header, the
// LID-routed and directed-route subnet-management packet (SMP) and the general
// headers that share it.
//
// SMP is the decoded form of a subnet-management packet. Both directions are
// exact: what Unmarshal took in, reserved octets included, AppendBinary gives
// back. A short or foreign packet is an error that says what was wrong; no
// input panics.
package mad
