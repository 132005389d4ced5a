"""A window of `inodyne attach` held against `strace -f -c -p` over the same window.

Who is watched is stopped while the tracers begin, and again before they end: only a call that a thread was in at one of these instants
can be counted by one and not by the other.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 3
PROGRAM = Path(sys.argv[0]).name


def tree(root):
    """The process and its descendants that have not ended."""
    parents, states = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "stat").read_text().rsplit(") ", 1)[1].split()
                parents[int(entry.name)], states[int(entry.name)] = int(words[1]), words[0]
    found, above = [], [root]
    while above:
        one = above.pop()
        if states.get(one, "Z") != "Z":
            found.append(one)
        above += [pid for pid, parent in parents.items() if parent == one]
    return found


def status(pid, name):
    """A field of each thread of a process."""
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):
            lines = dict(line.split(":", 1) for line in (task / "status").read_text().splitlines() if ":" in line)
            yield lines[name].strip()


def until(what, holds):
    end = time.monotonic() + 60
    while not holds():
        if time.monotonic() > end:
            sys.exit(f"{PROGRAM}: in vain waited until {what}")
        time.sleep(0.01)


def tell(root, number):
    for pid in tree(root):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def stop(root):
    def is_stopped():
        tell(root, signal.SIGSTOP)
        return all(state[0] in "Tt" for pid in tree(root) for state in status(pid, "State"))
    until("it stops", is_stopped)


def strace_table(text):
    counts = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) in (5, 6) and words[0].replace(".", "").isdigit() and words[-1] != "total":
            counts[words[-1]] = int(words[3])
    return counts


def windows(inodyne, root, scratch, targets, *options, seconds=SECONDS):
    """What inodyne says of each target, each with its recording's file, and what strace counted of the root and its descendants.

    A target is the words of one, or a function that gives them of the root once it is stopped.
    """
    time.sleep(1)
    try:
        return watched(inodyne, root, scratch, targets, options, seconds)
    finally:
        tell(root, signal.SIGCONT)


def watched(inodyne, root, scratch, targets, options, seconds):
    stop(root)
    table = scratch / "strace"
    strace = subprocess.Popen(["strace", "-f", "-c", "-o", table, *(f"-p{pid}" for pid in tree(root))], stderr=subprocess.DEVNULL)
    until("strace follows", lambda: all(tracer != "0" for pid in tree(root) for tracer in status(pid, "TracerPid")))
    watching = []
    for number, target in enumerate(targets):
        kept = scratch / f"window-{number}.inodyne"
        words = target(root) if callable(target) else target
        command = [inodyne, "attach", *options, *words, "-o", kept, "--format", "json"]
        ours = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = ours.stderr.readline()
        if "following" not in said:
            sys.exit(f"{PROGRAM}: inodyne follows nobody: {said}")
        watching.append((ours, kept))
    tell(root, signal.SIGCONT)
    time.sleep(seconds)
    stop(root)
    for ours, _ in watching:
        ours.send_signal(signal.SIGINT)
        ours.communicate()
    strace.send_signal(signal.SIGINT)
    strace.wait()
    tell(root, signal.SIGCONT)
    return [(shown(inodyne, kept), kept) for _, kept in watching], strace_table(table.read_text())


def shown(inodyne, kept):
    """A recording as data."""
    return json.loads(subprocess.run([inodyne, "show", kept, "--format", "json"], check=True, stdout=subprocess.PIPE).stdout)


def pids(root):
    """The processes as a target of `attach`."""
    return [word for pid in tree(root) for word in ("--pid", str(pid))]


COLUMNS = "threads | calls | strace's | largest difference of a call | unexplained"


def judged(recording, theirs):
    """The columns of a row, and whether they are as they should be."""
    trace = recording["traces"][0]
    ours = {call["name"]: call["calls"] for call in trace["syscalls"]}
    names = (set(ours) | set(theirs)) - {"exit", "exit_group"}
    worst = max(names, key=lambda call: abs(ours.get(call, 0) - theirs.get(call, 0)))
    difference = ours.get(worst, 0) - theirs.get(worst, 0)
    # Who was there at the beginning or at the end.
    edges = sum(1 for thread in trace["observed"]["threads"] if not thread.get("parent") or thread.get("alive"))
    unexplained = trace["ledger"]["unexplained_ns"] / trace["ledger"]["wall_ns"]
    rows = sum(row["ns"] for thread in trace["threads"] for row in thread["rows"])
    adds_up = rows == sum(thread["lifetime_ns"] for thread in trace["threads"])
    counted = sum(ours[call] for call in names if call in ours)
    columns = f"{len(trace['threads'])} | {counted} | {sum(theirs.values())} | {difference:+} ({worst}) | {unexplained:.2%}"
    is_right = abs(difference) <= edges and unexplained <= 0.01 and adds_up and sum(trace["lost"].values()) == 0
    return columns, is_right
