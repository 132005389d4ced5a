"""How each tool is called to trace a command, and how many calls of one name it says it saw."""

import json
import re

BPFTRACE = """
BEGIN { @followed[cpid] = 1; }
tracepoint:sched:sched_process_fork /@followed[args->parent_pid]/ { @followed[args->child_pid] = 1; }
tracepoint:raw_syscalls:sys_enter /@followed[tid]/ { @start[tid] = nsecs; }
tracepoint:raw_syscalls:sys_exit /@start[tid]/
{
	@calls[args->id] = count();
	@total[args->id] = sum(nsecs - @start[tid]);
	delete(@start[tid]);
}
END { clear(@followed); clear(@start); }
"""
READ = 0  # the number of read(2) on x86-64; bpftrace shows numbers


class Tracer:
    """A column of the table."""

    def __init__(self, name, title, command, reads=None, slowness=1):
        self.name = name
        self.title = title
        self._command = command
        self._reads = reads
        # How many times fewer calls the row of cheap calls may make under it.
        self.slowness = slowness

    def command(self, workshop, argv):
        """The words that trace `argv`; what the tool reports goes to workshop.log."""
        return self._command(workshop, str(workshop.log)) + argv

    def reads(self, workshop):
        """How many read(2) it saw of the whole command; None where it does not count."""
        return self._reads(workshop.log.read_text()) if self._reads else None


def _inodyne(*options):
    return lambda shop, log: [shop.inodyne, "run", "-o", log, *options, "--"]


def _inodyne_reads(shop, program):
    recording = json.loads(shop.output([program, "show", "--format", "json", str(shop.log)]))
    return sum(row["calls"] for row in recording["traces"][0]["syscalls"] if row["name"] == "read")


def _strace_reads(text):
    return sum(int(m[1]) for m in re.finditer(r"^\s*[\d.]+\s+[\d.]+\s+\d+\s+(\d+)\s+(?:\d+\s+)?read$", text, re.M))


def _perf_reads(text):
    return sum(int(m[1]) for m in re.finditer(r"^\s+read\s+(\d+)\s", text, re.M))


def _bpftrace_reads(text):
    return sum(int(m[1]) for m in re.finditer(rf"^@calls\[{READ}\]: (\d+)$", text, re.M))


class _Inodyne(Tracer):
    def reads(self, workshop):
        return _inodyne_reads(workshop, workshop.inodyne)


class Other(Tracer):
    """Another version of inodyne, measured by turns with this one."""

    def __init__(self, program):
        super().__init__("other", "inodyne, other version", lambda shop, log: [program, "run", "-o", log, "--"])
        self._program = program

    def reads(self, workshop):
        return _inodyne_reads(workshop, self._program)


class _Bpftrace(Tracer):
    """Takes its command as one string."""

    def command(self, workshop, argv):
        return ["bpftrace", "-o", str(workshop.log), "-e", BPFTRACE, "-c", " ".join(argv)]


ALL = [
    Tracer("none", "no tracing", lambda shop, log: []),
    Tracer("again", "no tracing, again", lambda shop, log: []),
    Tracer("empty", "two empty programs", lambda shop, log: [shop.fixture("empty")]),
    Tracer("clock", "two programs that read the clock", lambda shop, log: [shop.fixture("empty"), "--clock"]),
    _Inodyne("inodyne", "inodyne", _inodyne()),
    _Inodyne("inodyne-0hz", "inodyne, no sampling", _inodyne("--sample-hz", "0")),
    _Bpftrace("bpftrace", "bpftrace count, sum", None, _bpftrace_reads),
    Tracer("perf", "perf trace -s", lambda shop, log: ["perf", "trace", "-s", "-o", log], _perf_reads, slowness=5),
    Tracer("strace", "strace -f -c -w", lambda shop, log: ["strace", "-f", "-c", "-w", "-o", log], _strace_reads, 50),
]
