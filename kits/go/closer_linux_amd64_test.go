package steadfast

import (
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

const closerLife = "STEADFAST_TEST_CLOSER"

// Not a test of its own: the process that is killed.
func TestLifeWithACloser(t *testing.T) {
	life := os.Getenv(closerLife)
	if life == "" {
		t.Skip("it is another test's")
	}
	memory := make([]byte, 256<<20)
	for at := 0; at < len(memory); at += 4096 {
		memory[at] = 1
	}
	if life == "watched" {
		beginCloser()
		<-closerTried
	}
	_, _ = os.Stdin.Write([]byte("ready"))
	select {}
}

// Pairs of one and the other: noise that hits both alike must hit most pairs on one side to count.
func TestADeathIsToldBeforeTheMemoryIsFreed(t *testing.T) {
	sooner, pairs := 0, 7
	for range pairs {
		with, without := killed(t, "watched"), killed(t, "alone")
		t.Logf("with a closer %v, without %v", with, without)
		if 2*with < without {
			sooner++
		}
	}
	if 2*sooner <= pairs {
		t.Errorf("only %d of %d deaths were told sooner", sooner, pairs)
	}
}

func killed(t *testing.T, life string) time.Duration {
	ends, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=^TestLifeWithACloser$")
	child.Env = append(os.Environ(), closerLife+"="+life)
	input, end := os.NewFile(uintptr(ends[0]), "child"), os.NewFile(uintptr(ends[1]), "parent")
	child.Stdin = input
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	input.Close()
	socket, err := net.FileConn(end)
	end.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	if _, err := io.ReadFull(socket, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_ = child.Process.Kill()
	_, _ = socket.Read(make([]byte, 1))
	took := time.Since(begun)
	_ = child.Wait()
	return took
}
