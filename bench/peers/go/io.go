// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT

package main

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"syscall"
	"time"
)

func blockedBurst() {
	var pipes [4][2]int
	var readers sync.WaitGroup

	on(2)
	readers.Add(len(pipes))
	for i := range pipes {
		if err := syscall.Pipe(pipes[i][:]); err != nil {
			die(err)
		}
		go func(fd int) {
			var c [1]byte

			syscall.Read(fd, c[:])
			readers.Done()
		}(pipes[i][0])
	}
	time.AfterFunc(100*time.Millisecond, func() {
		for i := range pipes {
			syscall.Write(pipes[i][1], []byte{0})
		}
	})
	time.Sleep(5 * time.Millisecond)

	begin()
	all(1000, func(int) {})
	putTime("1000_tiny", inMs, 1)
	readers.Wait()
}

// compute needs ns of the thread's processor.
func compute(ns int64) {
	if ns == 0 {
		return
	}
	runtime.LockOSThread()
	for end := clock(3) + ns; clock(3) < end; { // CLOCK_THREAD_CPUTIME_ID
	}
	runtime.UnlockOSThread()
}

func echo(conn net.Conn, handle func()) {
	buf := make([]byte, 4096)

	defer conn.Close()
	for {
		n, err := conn.Read(buf)
		if err != nil {
			return
		}
		handle()
		if _, err = conn.Write(buf[:n]); err != nil {
			return
		}
	}
}

func listen() net.Listener {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		die(err)
	}
	fmt.Printf("listening on %s\n", l.Addr())
	return l
}

// serve echoes until it is killed, and calls handle for each piece.
func serve(l net.Listener, handle func()) {
	for {
		conn, err := l.Accept()
		if err != nil {
			die(err)
		}
		go echo(conn, handle)
	}
}
