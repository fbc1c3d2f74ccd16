//go:build !purego

#include "textflag.h"

// Bytes of indexes for PSHUFB: an index with its highest bit set gives zero. Read from
// byte r on, they move 16 bytes up by 16-r places; from 16+r on, down by r places.
DATA places<>+0(SB)/8, $0x8080808080808080
DATA places<>+8(SB)/8, $0x8080808080808080
DATA places<>+16(SB)/8, $0x0706050403020100
DATA places<>+24(SB)/8, $0x0F0E0D0C0B0A0908
DATA places<>+32(SB)/8, $0x8080808080808080
DATA places<>+40(SB)/8, $0x8080808080808080
GLOBL places<>(SB), RODATA|NOPTR, $48

// FOLD moves the 16 bytes in x by the distance of the constants in k; t is lost.
#define FOLD(k, x, t) \
	MOVOA     x, t;         \
	PCLMULQDQ $0x00, k, x;  \
	PCLMULQDQ $0x11, k, t;  \
	PXOR      t, x

// WIDE is FOLD for four times 16 bytes, with the 64 bytes at mem added.
#define WIDE(k, z, t, mem) \
	VPCLMULQDQ $0x00, k, z, t;  \
	VPCLMULQDQ $0x11, k, z, z;  \
	VPXORQ     mem, z, z;       \
	VPXORQ     t, z, z

// func foldBytes(k *folding, first, second uint64, p *byte, n int, wide bool) uint32
//
// X0 has the 16 bytes that stand for all before SI; CX bytes are left.
TEXT ·foldBytes(SB), NOSPLIT, $0-52
	MOVQ       k+0(FP), DI
	MOVQ       first+8(FP), X0
	MOVQ       second+16(FP), X1
	PUNPCKLQDQ X1, X0
	MOVQ       p+24(FP), SI
	MOVQ       n+32(FP), CX
	MOVOU      0(DI), X7          // folding.by128
	CMPQ       CX, $112
	JLT        ones
	CMPB       wide+40(FP), $0
	JEQ        fours
	CMPQ       CX, $496
	JLT        fours

	// 256 bytes at a time, the first of them the 16 in X0 and the 240 from SI on.
	VBROADCASTI32X4 16(DI), Z8    // folding.by512
	VBROADCASTI32X4 32(DI), Z9    // folding.by2048
	VMOVDQU64       -16(SI), Z1
	VINSERTI32X4    $0, X0, Z1, Z0
	VMOVDQU64       48(SI), Z1
	VMOVDQU64       112(SI), Z2
	VMOVDQU64       176(SI), Z3
	ADDQ            $240, SI
	SUBQ            $240, CX

wide256:
	WIDE(Z9, Z0, Z4, 0(SI))
	WIDE(Z9, Z1, Z5, 64(SI))
	WIDE(Z9, Z2, Z6, 128(SI))
	WIDE(Z9, Z3, Z10, 192(SI))
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JGE  wide256

	WIDE(Z8, Z0, Z4, Z1)
	WIDE(Z8, Z0, Z4, Z2)
	WIDE(Z8, Z0, Z4, Z3)
	CMPQ CX, $64
	JLT  narrow

wide64:
	WIDE(Z8, Z0, Z4, 0(SI))
	ADDQ $64, SI
	SUBQ $64, CX
	CMPQ CX, $64
	JGE  wide64

narrow:
	VEXTRACTI32X4 $1, Z0, X1
	VEXTRACTI32X4 $2, Z0, X2
	VEXTRACTI32X4 $3, Z0, X3
	VZEROUPPER
	JMP merge

	// 64 bytes at a time.
fours:
	MOVOU 16(DI), X8              // folding.by512
	MOVOU 0(SI), X1
	MOVOU 16(SI), X2
	MOVOU 32(SI), X3
	ADDQ  $48, SI
	SUBQ  $48, CX

four:
	FOLD(X8, X0, X4)
	FOLD(X8, X1, X5)
	FOLD(X8, X2, X6)
	FOLD(X8, X3, X9)
	MOVOU 0(SI), X4
	MOVOU 16(SI), X5
	MOVOU 32(SI), X6
	MOVOU 48(SI), X9
	PXOR  X4, X0
	PXOR  X5, X1
	PXOR  X6, X2
	PXOR  X9, X3
	ADDQ  $64, SI
	SUBQ  $64, CX
	CMPQ  CX, $64
	JGE   four

merge:
	FOLD(X7, X0, X4)
	PXOR X1, X0
	FOLD(X7, X0, X4)
	PXOR X2, X0
	FOLD(X7, X0, X4)
	PXOR X3, X0

ones:
	CMPQ CX, $16
	JLT  rest

one:
	MOVOU 0(SI), X1
	FOLD(X7, X0, X4)
	PXOR  X1, X0
	ADDQ  $16, SI
	SUBQ  $16, CX
	CMPQ  CX, $16
	JGE   one

	// Fewer than 16 are left: of what is in X0 so many go by, and the others make
	// room for them.
rest:
	TESTQ   CX, CX
	JEQ     reduce
	LEAQ    places<>(SB), AX
	MOVOU   (AX)(CX*1), X1
	MOVOU   16(AX)(CX*1), X2
	MOVOU   -16(SI)(CX*1), X3
	MOVOA   X0, X5
	PSHUFB  X1, X0                // what goes by
	PSHUFB  X2, X5                // what stays
	PXOR    X6, X6
	PCMPGTB X2, X6                // where there is room
	PAND    X6, X3
	FOLD(X7, X0, X4)
	PXOR    X5, X0
	PXOR    X3, X0

	// 128 bits, and 32 of zero that a CRC has after them, to 96, to 64, to 32.
reduce:
	MOVOU     48(DI), X8          // folding.by96, by64
	MOVOA     X0, X1
	PCLMULQDQ $0x00, X8, X1
	PSRLO     $8, X0
	PSLLO     $4, X0
	PXOR      X1, X0
	MOVOA     X0, X1
	PCLMULQDQ $0x10, X8, X1
	PXOR      X0, X1
	PSRLO     $8, X1
	MOVOU     64(DI), X8          // folding.quotient, generator
	MOVOA     X1, X2
	PSLLQ     $32, X2
	PSRLQ     $32, X2
	PCLMULQDQ $0x00, X8, X2
	PSLLQ     $32, X2
	PSRLQ     $32, X2
	PCLMULQDQ $0x10, X8, X2
	PXOR      X2, X1
	PSRLQ     $32, X1
	MOVQ      X1, AX
	MOVL      AX, ret+48(FP)
	RET
