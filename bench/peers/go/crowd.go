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
	crowdUnit    = 100000
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

// member runs until isOver, and counts what it has done.
type member func(isOver *atomic.Bool, calls *atomic.Int64)

func sleepOn(isOver *atomic.Bool, calls *atomic.Int64) {
	for !isOver.Load() {
		blockFor(crowdSleepNs)
		calls.Add(1)
	}
}

// mix is splitmix64, as in util.h.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9
	x = (x ^ (x >> 27)) * 0x94d049bb133111eb
	return x ^ (x >> 31)
}

var computed atomic.Uint64

func computeOn(isOver *atomic.Bool, calls *atomic.Int64) {
	var v uint64

	for !isOver.Load() {
		for i := 0; i < crowdUnit; i++ {
			v = mix(v)
		}
		calls.Add(1)
	}
	computed.Store(v)
}

// among is how late a ticker of 1 ms is beside nr members.
func among(name string, nr int, fn member) {
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
			fn(&isOver, &calls)
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

// serveCrowd echoes on two ports; handlers of the first block, and nr
// goroutines compute.
func serveCrowd(nr int) {
	var isOver atomic.Bool
	var calls atomic.Int64

	on(2)
	first, second := listen(), listen()
	for i := 0; i < nr; i++ {
		go computeOn(&isOver, &calls)
	}
	go serve(first, func() { blockFor(crowdSleepNs) })
	serve(second, func() {})
}

// crowd is the case "usleep:number", "between:number" or "compute:number" of
// bench/crowd.
func crowd(name string) {
	call, number, _ := strings.Cut(name, ":")
	nr := whole(number)
	on(2)
	switch call {
	case "between":
		quickBetween(name, nr)
	case "usleep":
		among(name, nr, sleepOn)
	case "compute":
		among(name, nr, computeOn)
	default:
		die("no case", name)
	}
}

func whole(number string) int {
	nr, err := strconv.Atoi(number)
	if err != nil {
		die(err)
	}
	return nr
}
