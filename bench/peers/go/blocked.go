// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT

package main

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	crowdAheadNs = 10e6
	crowdSleepNs = 20e6
	crowdLongNs  = 999999e3
)

// blockFor sleeps in the kernel, as usleep() does; time.Sleep would park.
func blockFor(ns int64) {
	ts := syscall.NsecToTimespec(ns)
	syscall.Nanosleep(&ts, nil)
}

func crowdNs() int64 {
	seconds, err := strconv.ParseFloat(os.Getenv("CROWD_SECONDS"), 64)
	if err != nil {
		seconds = 2
	}
	return int64(seconds * 1e9)
}

func putUs(name string, ns int64) {
	put(name, "us", float64(ns)/1000)
}

// quickBetween is how long after its start a quick goroutine runs between two
// halves of nr that block.
func quickBetween(name string, nr int) {
	var ended sync.WaitGroup
	ran := make(chan int64, 1)
	block := func() {
		blockFor(crowdLongNs)
		ended.Done()
	}

	ended.Add(nr)
	for i := 0; i < nr/2; i++ {
		go block()
	}
	ns := monotonic()
	go func() { ran <- monotonic() }()
	for i := nr / 2; i < nr; i++ {
		go block()
	}
	putUs("worst/"+name, <-ran-ns)
	ended.Wait()
}

// amongSleepers is how late a ticker of 1 ms is beside nr that block again and
// again.
func amongSleepers(name string, nr int) {
	var isOver atomic.Bool
	var calls, counted atomic.Int64
	var ended sync.WaitGroup
	var late []int64

	ended.Add(nr + 1)
	go func() {
		due := monotonic()
		for end := due + crowdAheadNs + crowdNs(); due < end; {
			due += 1e6
			time.Sleep(at(due))
			late = append(late, monotonic()-due)
		}
		counted.Store(calls.Load())
		isOver.Store(true)
		ended.Done()
	}()
	blockFor(crowdAheadNs)
	for i := 0; i < nr; i++ {
		go func() {
			for !isOver.Load() {
				blockFor(crowdSleepNs)
				calls.Add(1)
			}
			ended.Done()
		}()
	}
	ended.Wait()
	sortNs(late)
	putUs("p50/"+name, late[len(late)*50/100])
	putUs("p99/"+name, late[len(late)*99/100])
	putUs("worst/"+name, late[len(late)-1])
	put("calls/"+name, "1/s", float64(counted.Load())*1e9/
		float64(crowdNs()))
}

// serveCrowd echoes on two ports; handlers of the first block.
func serveCrowd() {
	on(2)
	first, second := listen(), listen()
	go serve(first, func() { blockFor(crowdSleepNs) })
	serve(second, func() {})
}

// blockedBy is the case "usleep:number" or "between:number" of
// bench/crowds/usleep.
func blockedBy(name string) {
	call, number, _ := strings.Cut(name, ":")
	nr, err := strconv.Atoi(number)
	if err != nil {
		die(err)
	}
	on(2)
	switch call {
	case "between":
		quickBetween(name, nr)
	case "usleep":
		amongSleepers(name, nr)
	default:
		die("no case", name)
	}
}
