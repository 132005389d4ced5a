"""What a tracer takes of the machine's memory while it traces `sleep`: its own, and that of its BPF maps, which is the kernel's."""

import pathlib
import statistics
import subprocess
import time

MEASURED = ["inodyne", "other"]  # the others keep their maps to themselves, or have none
TRACED_S = "2"
LOOK_AFTER_S = 0.5  # after the command has begun


def measure(shop, column):
    """In bytes. Maps by their numbers, since a process may have several descriptors of one."""
    tracer = subprocess.Popen(column.command(shop, ["sleep", TRACED_S]), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    while "sleep" not in _names_below(tracer.pid):
        if tracer.poll() is not None:
            raise RuntimeError(f"{column.name} did not trace sleep")
        time.sleep(0.01)
    time.sleep(LOOK_AFTER_S)
    process = pathlib.Path(f"/proc/{tracer.pid}")
    maps = {}
    for file in (process / "fdinfo").iterdir():
        try:
            told = _fields(file)
        except FileNotFoundError:
            continue  # closed meanwhile
        if "map_id" in told:
            maps[told["map_id"]] = int(told["memlock"])
    resident = int(_fields(process / "status")["VmHWM"].split()[0]) << 10
    tracer.wait()
    return {"resident_bytes": resident, "map_bytes": sum(maps.values())}


def _names_below(pid):
    """The names of all processes that descend from this one."""
    names, left = set(), [pid]
    while left:
        at = pathlib.Path(f"/proc/{left.pop()}")
        try:
            names.add((at / "comm").read_text().strip())
            left += map(int, (at / f"task/{at.name}/children").read_text().split())
        except OSError:
            pass  # it has ended
    return names


def _fields(file):
    return dict(line.split(":", 1) for line in file.read_text().replace("\t", "").splitlines() if ":" in line)


def median_mb(entries, column, key):
    """None where it was not measured."""
    values = [entry[key] / 1e6 for entry in entries if entry["column"] == column]
    return statistics.median(values) if values else None
