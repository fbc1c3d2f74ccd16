//go:build !amd64 || purego

package packet

const canFold = false

func fold(*folding, uint64, uint64, []byte) uint32 { panic("packet: no carry-less multiplication") }
