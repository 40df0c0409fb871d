# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
#
# parklot in gdb: "info pl-tasks" and "pl-task TASK COMMAND", of a process or a
# core file.  It needs the library's debug information, and runs nothing in the
# program.  Cores are to be the kernel's: gdb's own generate-core-file leaves
# out stacks, as it does not read on after a guard page.
#
# A task that does not run has no thread, so gdb has no frames of it.  They are
# made as if the selected thread's innermost frame had been called by the one
# that the task left (lib/ctx/arch/*/frame.h): registers are never written, so that
# core files will do, and nothing is to be put back.

import time

import gdb
import gdb.unwinder

# Saved by a switch, beside the stack pointer; the frame's field, its register.
REGISTERS = {
    "i386:x86-64": ("rsp", (("rip", "rip"), ("rbp", "rbp"), ("rbx", "rbx"))),
    "aarch64": ("sp", (("pc", "pc"), ("x29", "x29"), ("x19", "x19"))),
}


def what_is_missing():
    for objfile in gdb.objfiles():
        if "/libparklot.so." in objfile.filename:
            return ("no debug information of %s; in Debian's packages it is"
                    " libparklot0-dbgsym" % objfile.filename)
    return "no parklot here, or linked from an archive without debug information"


def runtime():
    # Not by an expression: that depends on the language of the frame.
    symbol = gdb.lookup_global_symbol("pl__rt")
    if symbol is None:
        raise gdb.GdbError(what_is_missing())
    return symbol.value()


def atomic(value):
    """What an _Atomic variable holds, whatever the compiler calls its type."""
    return value.cast(value.type.strip_typedefs().unqualified())


def number(value):
    return int(atomic(value))


def text(array):
    try:
        return array.string(errors="replace")
    except gdb.error:
        return "?"


def io_operation(word):
    """Operation and descriptor of the request that is waited for at word."""
    kind = gdb.lookup_type("struct pl__request")
    offset = next(f for f in kind.fields() if f.name == "done").bitpos // 8
    request = gdb.Value(word - offset).cast(kind.pointer())
    sqe = request["req"]["sqe"].dereference()
    opcode, fd = int(sqe["opcode"]), int(sqe["fd"])
    names = gdb.lookup_global_symbol("pl__op_names").value()
    if opcode > names.type.range()[1]:
        return "operation %d" % opcode
    has_fd = names[opcode]["has_fd"]
    return text(names[opcode]["name"]) + (" fd %d" % fd if has_fd else "")


def call_of(frame):
    """Number and first argument of the call the thread is in, or None."""
    try:
        if frame.architecture().name() == "i386:x86-64":
            nr = int(frame.read_register("orig_rax"))
            result = int(frame.read_register("rax"))
            # Interrupted for us: EINTR, or ERESTARTSYS and its kin.
            if nr < 0 or not (result == -4 or -516 <= result <= -512):
                return None
            return nr, int(frame.read_register("rdi"))
        pc = int(frame.read_register("pc"))
        code = gdb.selected_inferior().read_memory(pc - 4, 4)
        if bytes(code) != b"\x01\x00\x00\xd4":
            return None
        return int(frame.read_register("x8")), int(frame.read_register("x0"))
    except (ValueError, gdb.error):
        return None


def name_of_call(nr, arg):
    names = gdb.lookup_global_symbol("pl__syscall_names").value()
    for i in range(names.type.range()[1] + 1):
        if int(names[i]["nr"]) == nr:
            fd = ((arg & 0xffffffff) ^ 1 << 31) - (1 << 31)
            said = ", fd %d" % fd if names[i]["has_fd"] else ""
            return "%s(2)%s" % (text(names[i]["name"]), said)
    return "system call %d" % nr


def now_ms():
    """By the clock of the library's notes, or None: a core file has none."""
    connection = getattr(gdb.selected_inferior(), "connection", None)
    if connection is None or connection.type != "native":
        return None
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000000


def since(worker):
    """For how long it has been in its task, if the program noted that.

    See lib/watch/since_note.h."""
    w, now = runtime()["workers"][worker].dereference(), now_ms()
    note = number(w["sysmon"]["task_since"])
    # Workers are aligned to PL_CACHELINE.
    task = int(w["current"]) // int(w.type.alignof)
    key = (number(w["tick"]) + task * 2654435761) & 0xffffffff
    if now is None or not note or note >> 32 != key:
        return ""
    ms = (now - note) & 0xffffffff
    return ", in the task since %.1f s" % (0 if ms >> 31 else ms / 1000)


def doing(worker):
    """What the thread of a worker does, "" if gdb does not know the thread."""
    tid = number(runtime()["workers"][worker]["tid"])
    was, frame = gdb.selected_thread(), gdb.selected_frame()
    for thread in gdb.selected_inferior().threads():
        if thread.ptid[1] != tid:
            continue
        try:
            thread.switch()
            call = call_of(gdb.newest_frame())
        finally:
            was.switch()
            frame.select()
        what = "blocked in " + name_of_call(*call) if call else "computes"
        return what + since(worker)
    return ""


def waited_at(word):
    """The word, 0 for a task that does not wait; odd: in a slot for one."""
    # lib/wait/wait_lone.h: 2 is awake, 3 asleep.
    return word if not word & 2 else word & ~3 if word & 1 else 0


class Task:
    def __init__(self, at, slot, workers):
        self.at = at
        self.slot = slot
        self.version = number(at["version"])
        self.is_thread = not self.version & 1
        self.word = waited_at(number(at["waiter"]["word"]))
        self.stack = at["stack"]
        self.worker = workers.get(int(at.address))

    @property
    def handle(self):
        return self.version << 32 | self.slot

    @property
    def name(self):
        if self.is_thread:
            return "(thread)"
        if int(self.stack):
            return text(self.stack["user"]["name"])
        return text(self.at["waiter"]["name"])

    @property
    def is_new(self):
        return not int(self.stack) and not self.is_thread

    @property
    def has_frame(self):
        return not self.is_thread and not self.is_new and self.worker is None

    def what(self):
        """What it waits for: the address, and a task's name if it has one."""
        kind = int(self.at["waiter"]["what"])
        names = [f.name for f in gdb.lookup_type("enum pl__for").fields()]
        what = names[kind].replace("PL__FOR_", "").lower()
        if self.word & 1:
            what = "join"
        joined = joined_at(self.word & ~1) if what == "join" else None
        if joined:
            return "join of %#x '%s'" % (joined.handle, joined.name)
        # A thread that is no task waits for the task with its request.
        if what == "io" and not self.is_thread:
            return "io: " + io_operation(self.word)
        if what in ("sleep", "io", "getaddrinfo", "getnameinfo"):
            return what
        return "%s %#x" % (what, self.word)

    @property
    def state(self):
        place = int(self.at["waiter"]["place"])
        return self.does() + group_name(place >> 1) + \
            (", background" if place & 1 else "")

    def does(self):
        if self.worker is not None:
            on = "running on worker %d" % self.worker
            does = "waits for " + self.what() if self.word else \
                doing(self.worker)
            return on + ", " + does if does else on
        if self.word:
            return "waits for " + self.what()
        if self.is_thread:
            return "runs"
        return "not started" if self.is_new else "ready"


def group_name(index):
    """That of a group which the program has made, as words of a sentence."""
    if not index:
        return ""
    name = text(runtime()["groups"][index].dereference()["name"])
    return ", group %d%s" % (index + 1, " " + name if name else "")


def nr_workers(rt):
    return number(rt["nr_started"]) if int(rt["workers"]) else 0


def running(rt):
    """The task of each worker that has one: its address, the worker's number."""
    found = {}
    for i in range(nr_workers(rt)):
        current = int(rt["workers"][i]["current"])
        if current:
            found[current] = i
    return found


def at_slot(rt, slot):
    slab = rt["tasks"]
    shift = int(slab["shift"])
    chunk = number(slab["chunks"][slot >> shift])
    at = chunk + (slot & ((1 << shift) - 1)) * int(slab["obj_size"])
    return gdb.Value(at).cast(
        gdb.lookup_type("struct pl__task").pointer()).dereference()


def nr_slots(rt):
    return number(rt["tasks"]["nr_slots"]) if rt["has_tasks"] else 0


def joined_at(address):
    """The task that has its version, or its joiner's slot, at that address."""
    rt = runtime()
    slab = rt["tasks"]
    shift, size = int(slab["shift"]), int(slab["obj_size"])
    for i in range((nr_slots(rt) + (1 << shift) - 1) >> shift):
        chunk = number(slab["chunks"][i])
        if chunk <= address < chunk + (size << shift):
            slot = (i << shift) + (address - chunk) // size
            return Task(at_slot(rt, slot), slot, {})
    return None


def all_tasks():
    """The tasks that are alive, and the threads that wait."""
    rt = runtime()
    workers = running(rt)
    for slot in range(int(rt["first_slot"]), nr_slots(rt)):
        t = Task(at_slot(rt, slot), slot, workers)
        if not t.is_thread or (t.word and t.at["waiter"]["is_thread"]):
            yield t


def find(word):
    """The tasks by a handle, a slot or a name, which several may have."""
    tasks = [t for t in all_tasks() if not t.is_thread]
    try:
        n = int(word, 0)
        found = [t for t in tasks if n in (t.handle, t.slot)]
    except ValueError:
        found = [t for t in tasks if t.name == word]
    if not found:
        raise gdb.GdbError("no task '%s'; see info pl-tasks" % word)
    return found


# ---- frames of a task that does not run ----

class FrameId:
    def __init__(self, sp, pc):
        self.sp = sp
        self.pc = pc


class Unwinder(gdb.unwinder.Unwinder):
    """The innermost frame of the selected thread was called by the task."""

    def __init__(self):
        super().__init__("parklot")
        self.task = None

    def __call__(self, pending):
        arch = pending.architecture().name()
        if self.task is None or arch not in REGISTERS:
            return None
        sp_name, saved = REGISTERS[arch]
        sp = pending.read_register(sp_name)
        if int(sp) != self.sp:
            return None
        ctx = int(self.task.at["ctx"]["sp"])
        frame_type = gdb.lookup_type("struct pl__frame")
        frame = gdb.Value(ctx).cast(frame_type.pointer()).dereference()
        # Below what it "calls": gdb takes the other order for corruption.
        info = pending.create_unwind_info(
            FrameId(gdb.Value(ctx).cast(sp.type), frame[saved[0][0]]))
        for field, register in saved:
            kind = pending.read_register(register).type
            info.add_saved_register(register, frame[field].cast(kind))
        info.add_saved_register(
            sp_name, gdb.Value(ctx + frame_type.sizeof).cast(sp.type))
        return info

    def look_through(self, task):
        frame = gdb.newest_frame()
        arch = frame.architecture().name()
        if arch not in REGISTERS:
            raise gdb.GdbError("no parklot on %s" % arch)
        self.sp = int(frame.read_register(REGISTERS[arch][0]))
        self.task = task
        gdb.invalidate_cached_frames()

    def look_away(self):
        self.task = None
        gdb.invalidate_cached_frames()


unwinder = Unwinder()
gdb.unwinder.register_unwinder(None, unwinder, replace=True)


def thread_of(task):
    """The thread that runs it: its stack pointer lies in the task's stack."""
    low, high = int(task.stack["base"]), int(task.stack)
    best = None
    for thread in gdb.selected_inferior().threads():
        thread.switch()
        frame = gdb.newest_frame()
        sp_name = REGISTERS[frame.architecture().name()][0]
        sp = int(frame.read_register(sp_name))
        # On the worker's own stack: the nearest below what lies there.
        if sp < high and (low <= sp if low else
                          best is None or sp > best[0]):
            best = (sp, thread)
    if best is None:
        raise gdb.GdbError("no thread has the stack of '%s'" % task.name)
    return best[1]


def run_in_thread(task, command):
    thread_of(task).switch()
    gdb.execute(command)


def run_looking_through(task, command):
    unwinder.look_through(task)
    try:
        outer = gdb.newest_frame().older()
        if outer is None:
            raise gdb.GdbError("cannot unwind '%s'" % task.name)
        outer.select()
        said = gdb.execute(command, to_string=True)
    finally:
        unwinder.look_away()
    # The thread's own frame is none of the task's.
    for line in said.splitlines():
        if not line.startswith("#0 "):
            gdb.write(line + "\n")


# ---- commands ----

class InfoTasks(gdb.Command):
    """The tasks of parklot that are alive, and what each waits for.

Usage: info pl-tasks [NAME]
Threads that are no tasks are listed while they wait as tasks do."""

    def __init__(self):
        super().__init__("info pl-tasks", gdb.COMMAND_STATUS)

    def invoke(self, arg, from_tty):
        nr = 0
        gdb.write("%6s  %-18s %-16s %s\n" % ("Slot", "Task", "Name", "State"))
        for t in all_tasks():
            if arg and t.name != arg:
                continue
            handle = "-" if t.is_thread else "%#x" % t.handle
            gdb.write("%6d  %-18s %-16s %s\n" %
                      (t.slot, handle, t.name, t.state))
            nr += 1
        gdb.write("%d tasks, %d workers\n" % (nr, nr_workers(runtime())))


class OneTask(gdb.Command):
    """Run a command as if a task of parklot were the selected thread.

Usage: pl-task TASK COMMAND
TASK is a handle, a slot or a name, as "info pl-tasks" has them; COMMAND is bt,
frame N, info locals ...  It is run for each task of that name.  The frames of
a task that does not run begin with 1: it left from there."""

    def __init__(self):
        super().__init__("pl-task", gdb.COMMAND_STACK)

    def invoke(self, arg, from_tty):
        word, _, command = arg.strip().partition(" ")
        if not word:
            raise gdb.GdbError("usage: pl-task TASK COMMAND")
        for task in find(word):
            self.run(task, command)

    @staticmethod
    def run(task, command):
        thread, frame = gdb.selected_thread(), gdb.selected_frame()
        level = frame.level()
        gdb.write("Task %#x '%s', slot %d: %s\n" %
                  (task.handle, task.name, task.slot, task.state))
        if task.is_new:
            gdb.write("starts with %s\n" % task.at["fn"])
            return
        try:
            run = run_in_thread if task.worker is not None else \
                run_looking_through
            run(task, command.strip() or "bt")
        finally:
            thread.switch()
            gdb.execute("frame %d" % level, to_string=True)


InfoTasks()
OneTask()
