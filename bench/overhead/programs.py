"""The eBPF programs of the machine, and the kernel's counting of how long they run."""

import contextlib
import json
import pathlib
import subprocess

STATISTICS = pathlib.Path("/proc/sys/kernel/bpf_stats_enabled")


@contextlib.contextmanager
def counted_by_kernel():
    """Within it the kernel counts how often each program runs and for how long, which adds to each run."""
    before = STATISTICS.read_text()
    STATISTICS.write_text("1")
    try:
        yield
    finally:
        STATISTICS.write_text(before)


def shown():
    """Number -> what bpftool says of it, for all programs."""
    done = subprocess.run(["bpftool", "--json", "prog", "show"], check=True, capture_output=True, text=True)
    return {program["id"]: program for program in json.loads(done.stdout)}
