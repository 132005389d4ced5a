"""The schedule: blocks, order, single runs, and what is checked of each."""

import contextlib
import os
import random
import statistics
import subprocess
import sys
import time

from . import machine, memory

BYSTANDER = ["none", "empty", "inodyne", "inodyne-0hz", "bpftrace", "perf"]  # strace stops only what it traces
MEMORY = ["inodyne", "other"]  # the others keep their maps to themselves, or have none
BYSTANDER_CALLS = ["41", "50000"]  # rounds, calls in each
SETTLE_S = 0.05  # detaching goes on for a moment after a tracer has ended
BYSTANDER_LIMIT_S = 60


class Failed(Exception):
    """A run that cannot be counted."""


def run(shop, rows, columns, blocks, seed):
    """Everything, as plain data: a list of runs, each with what is needed to compute with it."""
    generator = random.Random(seed)
    runs, bystanders, memories, foreign = [], [], [], set()
    began = time.monotonic()
    for block in range(blocks):
        for row in generator.sample(rows, len(rows)):
            time.sleep(SETTLE_S)
            foreign.update(machine.foreign_tracers())
            cells = [column for column in columns for _ in range(1 if column.slowness > 1 else row.repeat)]
            for column in generator.sample(cells, len(cells)):
                runs.append({"block": block, "row": row.name, "column": column.name, **_cell(shop, row, column)})
        asked = [column for column in columns if column.name in BYSTANDER]
        for column in generator.sample(asked, len(asked)):
            ns = _bystander(shop, column)
            bystanders.append({"block": block, "column": column.name, "ns_per_call": ns})
        for column in (column for column in columns if column.name in MEMORY):
            memories.append({"block": block, "column": column.name, **_memory(shop, column)})
        took = time.monotonic() - began
        print(f"block {block + 1} of {blocks}: {took:.0f} s so far", file=sys.stderr, flush=True)
    return {"seed": seed, "blocks": blocks, "seconds": round(time.monotonic() - began), "runs": runs,
            "bystanders": bystanders, "memory": memories, "foreign_tracers": sorted(foreign)}


def _cell(shop, row, column):
    """One figure of one block. Where a tracer is too slow for all the calls, from fewer, less none at all."""
    if row.calls is None or column.slowness == 1:
        return _run(shop, row, column, row.calls)
    fewer = row.calls // column.slowness
    some, nothing = _run(shop, row, column, fewer), _run(shop, row, column, 0)
    per_call = (some["wall_ns"] - nothing["wall_ns"]) / fewer
    wall_ns = nothing["wall_ns"] + per_call * row.calls
    return {**some, "wall_ns": round(wall_ns), "scaled_from_calls": fewer, "measured_ns": some["wall_ns"],
            "without_calls_ns": nothing["wall_ns"]}


def _run(shop, row, column, calls):
    row.prepare(shop)
    shop.elapsed.unlink(missing_ok=True)
    shop.log.unlink(missing_ok=True)
    argv = [shop.fixture("stopwatch"), str(shop.elapsed), *row.argv(shop, calls)]
    time.sleep(SETTLE_S)
    began = time.monotonic_ns()
    done = subprocess.run(column.command(shop, argv), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0 or not shop.elapsed.exists():
        raise Failed(f"{row.name} under {column.name}: exit code {done.returncode}: {done.stderr[-500:]}")
    whole_ns = time.monotonic_ns() - began
    result = {"wall_ns": whole_ns if row.is_whole else int(shop.elapsed.read_text())}
    if calls:
        seen = column.reads(shop)
        if seen is not None:
            result["reads_seen_of"] = [seen, calls // 2]
    return result


@contextlib.contextmanager
def _tracing(shop, column, what):
    """While `sleep` is traced: the tracer."""
    ready = shop.root / "ready"
    ready.unlink(missing_ok=True)
    time.sleep(SETTLE_S)
    script = shop.root / "wait.sh"
    script.write_text(f": >{ready}\nexec sleep {BYSTANDER_LIMIT_S}\n")
    # In a session of its own: the tracer and what it traces are ended together.
    tracer = subprocess.Popen(column.command(shop, ["/bin/sh", str(script)]), stdin=subprocess.DEVNULL, start_new_session=True,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while not ready.exists():
        if tracer.poll() is not None:
            raise Failed(f"{what}'s {column.name} did not start")
        time.sleep(0.01)
    time.sleep(SETTLE_S)
    yield tracer
    if tracer.poll() is not None:
        raise Failed(f"{what}'s {column.name} ended too early")
    os.killpg(tracer.pid, 15)
    try:
        tracer.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(tracer.pid, 9)
        tracer.wait()


def _bystander(shop, column):
    """Nanoseconds per call of a process that is not traced, while `sleep` is."""
    with _tracing(shop, column, "the bystander"):
        cpu = str(sorted(os.sched_getaffinity(0))[-1])
        return float(shop.output([shop.fixture("bystander"), cpu, *BYSTANDER_CALLS]))


def _memory(shop, column):
    before = memory.maps()
    with _tracing(shop, column, "the row of memory") as tracer:
        return memory.taken(tracer.pid, before)


def by_block(runs, row, column):
    """One figure a block: the median of its repetitions."""
    blocks = {}
    for entry in runs:
        if (entry["row"], entry["column"]) == (row, column):
            blocks.setdefault(entry["block"], []).append(entry["wall_ns"])
    return {block: statistics.median(values) for block, values in blocks.items()}
