#include "textflag.h"

// func cloneCloser(flags, stack, robust uintptr) (pid uintptr)
//
// The parent returns. The child has no goroutine, so nothing of Go's runs in it: system calls alone,
// on a stack of its own.
TEXT ·cloneCloser(SB), NOSPLIT, $0-32
	MOVQ flags+0(FP), DI
	MOVQ stack+8(FP), SI
	MOVQ robust+16(FP), R12
	XORL DX, DX
	XORL R10, R10
	XORL R8, R8
	MOVL $56, AX // clone
	SYSCALL
	CMPQ AX, $0
	JEQ  child
	MOVQ AX, pid+24(FP)
	RET

child:
	// Its descriptors would hold the sockets open: it gets an empty table of its own.
	XORL DI, DI
	MOVL $0xffffffff, SI
	MOVL $2, DX // CLOSE_RANGE_UNSHARE
	MOVL $436, AX // close_range
	SYSCALL
	MOVL $112, AX // setsid
	SYSCALL

sleep:
	MOVL  32(R12), DX // robustList.word
	TESTL $0x40000000, DX // FUTEX_OWNER_DIED
	JNE   dead
	LEAQ  32(R12), DI
	XORL  SI, SI // FUTEX_WAIT
	XORL  R10, R10
	MOVL  $202, AX // futex
	SYSCALL
	JMP   sleep

dead:
	// The memory is to be this process's to free: the other threads' end comes first.
	MOVL 36(R12), DI // robustList.owner
	XORL SI, SI
	MOVL $434, AX // pidfd_open
	SYSCALL
	CMPQ AX, $0
	JLT  exit
	MOVL AX, 40(R12)  // robustList.poll: its descriptor
	MOVL $1, 44(R12)  // POLLIN
	LEAQ 40(R12), DI
	MOVL $1, SI
	MOVL $2000, DX
	MOVL $7, AX // poll
	SYSCALL

exit:
	XORL DI, DI
	MOVL $231, AX // exit_group
	SYSCALL
	INT  $3
