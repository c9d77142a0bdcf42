package steadfast

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// The closer is a process that shares this one's memory. Linux frees a dead process's memory before
// it closes its sockets, and the node would see the death of one with a gibibyte some 100 ms late. So
// it is the closer that frees it, after that. The kernel wakes it by a robust futex of a thread that
// lives as long as the process: docs/decisions/0080-closer.md.
type robustList struct {
	// What the kernel reads at the thread's end (struct robust_list_head), with one entry.
	list, offset, pending, entry uintptr
	word                         uint32
	owner                        int32
	poll                         [2]int32
}

const (
	cloneVM, cloneFiles   = 0x100, 0x400
	waiters               = 1 << 31
	closerStack           = 16 << 10
	anyChild, exited      = 0x40000000, 4
	stopped, setMask      = 2, 2
	setRobustList         = 273
	waitid, closeRange    = 247, 436
	byProcess, maskLength = 1, 8
	cldStopped            = 5
)

var (
	closerList  robustList            // not on a heap: the kernel and the closer know its address
	closerTried = make(chan struct{}) // closed when the first runs, or none can
)

func cloneCloser(flags, stack, robust uintptr) (pid uintptr)

// beginCloser has a closer watch this process. Without the kernel's leave its death is noticed later.
func beginCloser() {
	closerBegun.Do(func() { go func() { tellNoCloser(holdForCloser()) }() })
}

// Returns only if there is no closer: the reason.
func holdForCloser() error {
	tried := sync.OnceFunc(func() { close(closerTried) })
	defer tried()
	// Never unlocked: the thread lives as long as the process.
	runtime.LockOSThread()
	robust, none := &closerList, ^uintptr(0)&0xffffffff
	robust.list, robust.entry = uintptr(unsafe.Pointer(&robust.entry)), uintptr(unsafe.Pointer(robust))
	robust.offset = unsafe.Sizeof(robust.entry)
	robust.word, robust.owner = uint32(syscall.Gettid())|waiters, int32(os.Getpid())
	stack, err := syscall.Mmap(-1, 0, closerStack, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		return fmt.Errorf("mmap: %w", err)
	}
	top := uintptr(unsafe.Pointer(&stack[0])) + closerStack
	// An empty range: is there such a call?
	if _, _, errno := syscall.RawSyscall(closeRange, none, none, 0); errno != 0 {
		return fmt.Errorf("close_range: %w", errno)
	}
	if _, _, errno := syscall.RawSyscall(setRobustList, uintptr(unsafe.Pointer(robust)), 24, 0); errno != 0 {
		return fmt.Errorf("set_robust_list: %w", errno)
	}
	for {
		// No handler of this process may run in the closer.
		all, before := ^uint64(0), uint64(0)
		syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&all)), uintptr(unsafe.Pointer(&before)), maskLength, 0, 0)
		pid := cloneCloser(cloneVM|cloneFiles, top, uintptr(unsafe.Pointer(robust)))
		syscall.RawSyscall6(syscall.SYS_RT_SIGPROCMASK, setMask, uintptr(unsafe.Pointer(&before)), 0, maskLength, 0, 0)
		if int(pid) <= 0 {
			return fmt.Errorf("clone: %w", syscall.Errno(-pid))
		}
		tried()
		waitForCloser(pid)
		time.Sleep(time.Second)
	}
}

// One that is stopped would keep the memory of a dead process: it is ended, and another takes over.
func waitForCloser(pid uintptr) {
	var info [128]byte // siginfo_t: si_code is at 8
	for {
		_, _, errno := syscall.Syscall6(waitid, byProcess, pid, uintptr(unsafe.Pointer(&info)), exited|stopped|anyChild, 0, 0)
		code := *(*int32)(unsafe.Pointer(&info[8]))
		if errno == 0 && code == cldStopped {
			_ = syscall.Kill(int(pid), syscall.SIGKILL)
		} else if errno != syscall.EINTR {
			return
		}
	}
}
