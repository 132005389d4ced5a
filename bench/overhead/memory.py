"""What a process takes of the machine's memory: its own, and that of its BPF maps, which is the kernel's."""

import json
import pathlib
import subprocess


def maps():
    """Number -> bytes, for all maps of the machine. A process need not have a descriptor of each of its own: one map may hold another."""
    done = subprocess.run(["bpftool", "--json", "map", "show"], check=True, capture_output=True, text=True)
    return {shown["id"]: shown.get("bytes_memlock", 0) for shown in json.loads(done.stdout or "[]")}


def taken(pid, before):
    """In bytes: the most that was resident, and all maps that were not there before."""
    of_maps = sum(size for number, size in maps().items() if number not in before)
    resident = int(_fields(pathlib.Path(f"/proc/{pid}/status"))["VmHWM"].split()[0]) << 10
    return {"resident_bytes": resident, "map_bytes": of_maps}


def descriptors(pid):
    """What the kernel says of each file that a process has open, name by name (proc_pid_fdinfo(5))."""
    for file in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            yield _fields(file)
        except FileNotFoundError:
            continue  # closed meanwhile


def _fields(file):
    return dict(line.split(":", 1) for line in file.read_text().replace("\t", "").splitlines() if ":" in line)
