//go:build !purego

package packet

import "golang.org/x/sys/cpu"

// canFold says that the processor multiplies without carries, 16 bytes at a time;
// foldsWide, that it does so with 64.
var (
	canFold   = cpu.X86.HasPCLMULQDQ && cpu.X86.HasSSSE3
	foldsWide = canFold && cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ
)

// fold is the register after the bytes of first, second and rest, the first of them
// the lowest of first. The register before them has been added to first. Rest is what
// follows 16 bytes in memory: as many before it are read, and not used.
func fold(k *folding, first, second uint64, rest []byte) uint32 {
	var p *byte
	if len(rest) > 0 {
		p = &rest[0]
	}
	return foldBytes(k, first, second, p, len(rest), foldsWide)
}

//go:noescape
func foldBytes(k *folding, first, second uint64, p *byte, n int, wide bool) uint32
