// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT

package main

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

const (
	nrYields  = 2000000
	nrJoined  = 200000
	nrMany    = 100000
	nrTrips   = 200000
	nrTasks   = 8
	nrCounts  = 250000
	nrPairs   = 2000000
	nrWakes   = 1500
	nrWarm    = 50
	everyNs   = 400000
	spinNs    = 60000
	nrSleeps  = 1000
	nrSleeper = 10000
)

// all runs nr goroutines of fn and waits for them.
func all(nr int, fn func(i int)) {
	var wg sync.WaitGroup

	wg.Add(nr)
	for i := 0; i < nr; i++ {
		go func(i int) {
			fn(i)
			wg.Done()
		}(i)
	}
	wg.Wait()
}

func yield(name string, nr int) {
	on(1)
	begin()
	all(nr, func(int) {
		for i := 0; i < nrYields/nr; i++ {
			runtime.Gosched()
		}
	})
	putBusy(name, nrYields)
}

func yield2()    { yield("2_tasks", 2) }
func yield1000() { yield("1000_tasks", 1000) }

func join() {
	var wg sync.WaitGroup

	on(2)
	begin()
	for i := 0; i < nrJoined; i++ {
		wg.Add(1)
		go wg.Done()
		wg.Wait()
	}
	putTime("join", inNs, nrJoined)
}

func spawnMany() {
	on(2)
	all(nrMany, func(int) {})
	begin()
	all(nrMany, func(int) {})
	all(nrMany, func(int) {})
	putTime("task_100k", inNs, 2*nrMany)
}

func pingpongCond() {
	var m sync.Mutex
	c := sync.NewCond(&m)
	turn := 0

	on(1)
	begin()
	all(2, func(me int) {
		for i := 0; i < nrTrips; i++ {
			m.Lock()
			for turn != me {
				c.Wait()
			}
			turn = 1 - me
			c.Signal()
			m.Unlock()
		}
	})
	putBusy("cond", nrTrips)
}

// Channels are what Go has instead of words.
func pingpongChan() {
	ping, pong := make(chan int), make(chan int)

	on(1)
	begin()
	all(2, func(me int) {
		for i := 0; i < nrTrips; i++ {
			if me == 0 {
				ping <- i
				<-pong
			} else {
				<-ping
				pong <- i
			}
		}
	})
	putBusy("word", nrTrips)
}

func contended() {
	var m sync.Mutex
	sum := 0

	on(2)
	begin()
	all(nrTasks, func(int) {
		for i := 0; i < nrCounts; i++ {
			m.Lock()
			sum++
			m.Unlock()
		}
	})
	putTime("8_tasks", inNs, nrTasks*nrCounts)
}

func fib(n int, result *int, wg *sync.WaitGroup) {
	var less [2]int
	var children sync.WaitGroup

	defer wg.Done()
	if n < 2 {
		*result = n
		return
	}
	children.Add(2)
	go fib(n-1, &less[0], &children)
	go fib(n-2, &less[1], &children)
	children.Wait()
	*result = less[0] + less[1]
}

func fib27() {
	var wg sync.WaitGroup
	var result int

	on(2)
	begin()
	wg.Add(1)
	go fib(27, &result, &wg)
	wg.Wait()
	if result != 196418 {
		die("wrong")
	}
	putTime("27", inMs, 1)
}

func skynet(out chan<- int, first, size int) {
	if size == 1 {
		out <- first
		return
	}
	in, sum := make(chan int, 10), 0
	for i := 0; i < 10; i++ {
		go skynet(in, first+i*size/10, size/10)
	}
	for i := 0; i < 10; i++ {
		sum += <-in
	}
	out <- sum
}

func skynet1m() {
	out := make(chan int)

	on(2)
	begin()
	go skynet(out, 0, 1000000)
	if <-out != 499999500000 {
		die("wrong")
	}
	putTime("1m", inMs, 1)
}

func timers(name string, nr int) {
	on(2)
	before := memoryUsed()
	begin()
	all(nr, func(int) {
		for i := 0; i < nrPairs/nr; i++ {
			time.AfterFunc(time.Minute, func() {}).Stop()
		}
	})
	putTime(name, inNs, nrPairs)
	if nr == 1 {
		used := memoryUsed() - before
		if used < 0 {
			used = 0
		}
		put("memory", "B", float64(used)/nrPairs)
	}
}

func timers1() { timers("1_thread", 1) }
func timers4() { timers("4_threads", 4) }
func timers8() { timers("8_threads", 8) }

func sleepOften() {
	on(2)
	late := make([]int64, nrSleeps)
	ns := monotonic()
	for i := range late {
		ns += 1e6
		time.Sleep(at(ns))
		late[i] = monotonic() - ns
	}
	putQuantiles("1ms", late, 50, 99)
}

func nrSwitches() int64 {
	var ru syscall.Rusage

	syscall.Getrusage(syscall.RUSAGE_SELF, &ru)
	return ru.Nvcsw
}

// trickle spawns 10 goroutines of 1 us every 500 us.
func trickle() {
	const rounds = 2000

	on(2)
	ns := monotonic()
	switches := nrSwitches()
	begin()
	for i := 0; i < rounds; i++ {
		for k := 0; k < 10; k++ {
			go func() {
				for end := monotonic() + 1000; monotonic() < end; {
				}
			}()
		}
		ns += 500e3
		time.Sleep(at(ns))
	}
	put("round_cpu", "us", float64(cpuNs()-beganCPU)/1e3/rounds)
	put("round_switches", "switches",
		float64(nrSwitches()-switches)/rounds)
}

// Each due 100 ms after it comes to it, or in turn, 10 us apart.
func sleepAll(name string, due func(i int) int64) {
	on(2)
	late := make([]int64, nrSleeper)
	all(nrSleeper, func(i int) {
		ns := due(i)
		time.Sleep(at(ns))
		late[i] = monotonic() - ns
	})
	putQuantiles(name, late, 50, 99)
}

func sleepMany() {
	sleepAll("10k", func(int) int64 { return monotonic() + 100e6 })
}

func sleepInTurn() {
	first := monotonic() + 300e6
	sleepAll("10k_in_turn", func(i int) int64 {
		return first + int64(i)*10000
	})
}

// A thread of its own wakes; all else sleeps.
func wakeIdle() {
	var call, run []int64
	due := make(chan int64, 1)
	done := make(chan bool)

	on(2)
	go func() {
		for i := 0; i < nrWakes; i++ {
			ns := <-due
			if i >= nrWarm {
				run = append(run, monotonic()-ns)
			}
		}
		done <- true
	}()
	runtime.LockOSThread()
	ns := monotonic()
	for i := 0; i < nrWakes; i++ {
		ns += everyNs
		time.Sleep(at(ns - 4*spinNs))
		for monotonic() < ns {
		}
		start := monotonic()
		due <- ns
		if i >= nrWarm {
			call = append(call, monotonic()-start)
		}
	}
	<-done
	runtime.UnlockOSThread()
	putQuantiles("call", call, 50)
	putQuantiles("run", run, 50, 99)
}

func parked() {
	const nr = 100000
	var here, ended sync.WaitGroup
	release := make(chan bool)

	on(2)
	before := memoryUsed()
	here.Add(nr)
	ended.Add(nr)
	for i := 0; i < nr; i++ {
		go func() {
			here.Done()
			<-release
			ended.Done()
		}()
	}
	here.Wait()
	most := memoryUsed()
	put("parked_100k", "B", float64(most-before)/nr)
	close(release)
	ended.Wait()
	time.Sleep(500 * time.Millisecond)
	put("parked_100k_given_back", "%",
		100*float64(most-memoryUsed())/float64(most-before))
}
