// SPDX-License-Identifier: LGPL-2.1-or-later OR MIT

// The same work on goroutines, printed as bench.h does. Two processors, or
// one where there is one worker.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

type unit struct {
	name string
	ns   float64
}

var (
	inNs = unit{"ns", 1}
	inMs = unit{"ms", 1e6}

	subject  string
	began    int64
	beganCPU int64
)

func clock(id uintptr) int64 {
	var ts syscall.Timespec

	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, id,
		uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

func cpuNs() int64 {
	return clock(2) // CLOCK_PROCESS_CPUTIME_ID
}

var epoch = time.Now()

// monotonic is monotonic, and no system call.
func monotonic() int64 {
	return int64(time.Since(epoch))
}

func at(ns int64) time.Duration {
	return time.Duration(ns - monotonic())
}

func put(name, unit string, value float64) {
	fmt.Printf("%s\t%s\t%.9g\t%.9g\t%.9g\t%s\n", subject, name, value,
		value, value, unit)
}

func begin() {
	began, beganCPU = monotonic(), cpuNs()
}

func putTime(name string, u unit, nr float64) {
	wall, cpu := monotonic()-began, cpuNs()-beganCPU

	put(name, u.name, float64(wall)/u.ns/nr)
	put(name+".cpu", u.name, float64(cpu)/u.ns/nr)
}

func putBusy(name string, nr float64) {
	put(name, "ns", float64(cpuNs()-beganCPU)/nr)
}

func sortNs(ns []int64) {
	sort.Slice(ns, func(i, j int) bool { return ns[i] < ns[j] })
}

func putQuantiles(name string, ns []int64, parts ...float64) {
	sortNs(ns)
	for _, p := range parts {
		i := int(float64(len(ns))*p/100+0.999999) - 1
		put(fmt.Sprintf("%s_p%g", name, p), "us",
			float64(ns[i])/1000)
	}
}

func status(key string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		die(err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		var kb int64
		if strings.HasPrefix(line, key) {
			fmt.Sscanf(line[len(key):], "%d", &kb)
			return kb * 1024
		}
	}
	die("no " + key)
	return 0
}

func memoryUsed() int64 {
	return status("VmRSS:") + status("VmPTE:")
}

func die(what ...any) {
	fmt.Fprintln(os.Stderr, append([]any{"go:"}, what...)...)
	os.Exit(2)
}

var subjects = map[string][]func(){
	"yield":         {yield2, yield1000},
	"spawn":         {join, spawnMany},
	"pingpong":      {pingpongCond, pingpongChan},
	"mutex":         {contended},
	"fib":           {fib27},
	"skynet":        {skynet1m},
	"timer":         {timers1, timers4, timers8},
	"sleep":         {sleepOften, sleepMany, sleepInTurn},
	"wake":          {wakeIdle},
	"memory":        {parked},
	"blocked_burst": {blockedBurst},
	"trickle":       {trickle},
}

// on sets how many goroutines run at a time.
func on(nr int) {
	runtime.GOMAXPROCS(nr)
}

// echoComputeNs is what "echo --compute US" says.
func echoComputeNs() int64 {
	if len(os.Args) < 4 || os.Args[2] != "--compute" {
		return 0
	}
	us, err := strconv.ParseInt(os.Args[3], 10, 32)
	if err != nil {
		die(err)
	}
	return us * 1000
}

// "go SUBJECT --runs 1": runs are processes, so it does one.
func main() {
	if len(os.Args) < 2 {
		die("which subject, list, echo, http, https, crowd, crowd_server?")
	}
	subject = os.Args[1]
	switch subject {
	case "http", "https":
		serveFiles(os.Args[1] == "https")
	case "echo":
		on(2)
		ns := echoComputeNs()
		serve(listen(), func() { compute(ns) })
	case "crowd_server":
		nr := 0
		if len(os.Args) > 2 {
			nr = whole(os.Args[2])
		}
		serveCrowd(nr)
	case "crowd":
		if len(os.Args) < 3 {
			die("which case?")
		}
		crowd(os.Args[2])
	case "list":
		for name := range subjects {
			fmt.Println(name)
		}
		return
	}
	for _, measure := range subjects[subject] {
		runtime.GC()
		measure()
	}
}
