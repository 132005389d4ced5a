"""What a process takes of the machine's memory: its own, and that of its BPF maps, which is the kernel's."""

import pathlib


def taken(pid):
    """In bytes: the most that was resident, and all maps. These by their numbers, since it may have several descriptors of one."""
    process = pathlib.Path(f"/proc/{pid}")
    maps = {}
    for file in (process / "fdinfo").iterdir():
        try:
            told = _fields(file)
        except FileNotFoundError:
            continue  # closed meanwhile
        if "map_id" in told:
            maps[told["map_id"]] = int(told["memlock"])
    resident = int(_fields(process / "status")["VmHWM"].split()[0]) << 10
    return {"resident_bytes": resident, "map_bytes": sum(maps.values())}


def _fields(file):
    return dict(line.split(":", 1) for line in file.read_text().replace("\t", "").splitlines() if ":" in line)
