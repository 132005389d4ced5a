"""What a process takes of the machine's memory: its own, and that of its BPF maps, which is the kernel's."""

import pathlib


def taken(pid):
    """In bytes: the most that was resident, and all maps. These by their numbers, since it may have several descriptors of one."""
    maps = {told["map_id"]: int(told["memlock"]) for told in descriptors(pid) if "map_id" in told}
    resident = int(_fields(pathlib.Path(f"/proc/{pid}/status"))["VmHWM"].split()[0]) << 10
    return {"resident_bytes": resident, "map_bytes": sum(maps.values())}


def descriptors(pid):
    """What the kernel says of each file that a process has open, name by name (proc_pid_fdinfo(5))."""
    for file in pathlib.Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            yield _fields(file)
        except FileNotFoundError:
            continue  # closed meanwhile


def _fields(file):
    return dict(line.split(":", 1) for line in file.read_text().replace("\t", "").splitlines() if ":" in line)
