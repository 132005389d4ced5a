"""The machine: a private corner to work in, and a description for the result."""

import os
import pathlib
import platform
import shutil
import subprocess
import sys
import tempfile

IMAGE_BYTES = 4 << 30


def enter_private_namespace():
    """Starts over in a mount namespace of its own: whatever happens, nothing stays mounted."""
    if os.environ.get("INODYNE_BENCH_PRIVATE") != "1":
        os.environ["INODYNE_BENCH_PRIVATE"] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


class Workshop:
    """Compiled fixtures, a tmpfs and an ext4 on a loop device with direct I/O."""

    def __init__(self, sources, inodyne):
        self.sources = sources
        self.inodyne = str(pathlib.Path(inodyne).resolve())

    def __enter__(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="inodyne-bench-", dir="/var/tmp"))
        self.must(["mount", "-t", "tmpfs", "-o", "size=75%", "bench", str(self.root)])
        self.log, self.elapsed = self.root / "log", self.root / "elapsed"
        self.tmpfs, self.ext4 = self.root / "tmpfs", self.root / "ext4"
        self.tmpfs.mkdir()
        self.ext4.mkdir()
        shared = self.sources.parent.parent / "fixtures"  # of the tests
        for source in [*self.sources.glob("*.c"), shared / "ping_pong.c"]:
            self.must(["cc", "-O2", "-pthread", "-Wall", "-Wextra", "-Werror", "-o", self.fixture(source.stem), str(source)])
        with tempfile.NamedTemporaryFile(dir="/var/tmp") as image:
            os.truncate(image.name, IMAGE_BYTES)
            self.must(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0,lazy_journal_init=0", image.name])
            device = self.output(["losetup", "--find", "--show", "--direct-io=on", image.name]).strip()
            self.must(["mount", device, str(self.ext4)])
            self.must(["losetup", "--detach", device])  # as soon as it is not mounted any more
        return self

    def __exit__(self, *_):
        self.must(["umount", str(self.ext4)])
        self.must(["umount", str(self.root)])
        self.root.rmdir()

    def fixture(self, name):
        return str(self.root / name)

    def must(self, argv):
        subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def output(self, argv):
        return subprocess.run(argv, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout


def describe(shop):
    cpuinfo = pathlib.Path("/proc/cpuinfo").read_text()
    fields = dict(line.split(":", 1) for line in cpuinfo.split("\n\n")[0].splitlines() if ":" in line)
    fields = {key.strip(): value.strip() for key, value in fields.items()}
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    first_line = lambda *argv: (shop.output(list(argv)).splitlines() or ["?"])[0]  # noqa: E731
    tools = {
        "inodyne": first_line(shop.inodyne, "--version"),
        "bpftrace": first_line("bpftrace", "--version"),
        "perf": first_line("perf", "--version"),
        "strace": first_line("strace", "-V"),
        "find": first_line("find", "--version"),
        "rm and dd": first_line("rm", "--version"),
    }
    return {
        "kernel": platform.release(),
        "cpu": fields.get("model name", "?"),
        "cpus": os.cpu_count(),
        "virtual_machine": "hypervisor" in fields.get("flags", "").split(),
        "memory_bytes": memory,
        "load_before": os.getloadavg(),
        "tools": tools,
    }


def foreign_tracers():
    """Which eBPF programs hang on the tracepoints of system calls while none of ours does: they would be in every
    figure. Other kinds of tracers are not seen."""
    found = set()
    for fdinfo in pathlib.Path("/proc").glob("[0-9]*/fdinfo"):
        try:
            owner = (fdinfo.parent / "comm").read_text().strip()
            texts = [(fdinfo / name).read_text() for name in os.listdir(fdinfo)]
        except OSError:
            continue  # it has ended meanwhile
        if any("tp_name:\tsys_e" in text for text in texts):
            found.add(owner)
    return sorted(found)


def revision(directory):
    """What of the project was measured, and whether it was changed since its last commit."""
    if not shutil.which("git"):
        return "?"
    git = ["git", "-C", str(directory), "-c", f"safe.directory={directory}"]
    found = subprocess.run([*git, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True)
    changed = subprocess.run([*git, "status", "--porcelain", "--untracked-files=no"], capture_output=True, text=True)
    return (found.stdout.strip() or "?") + (" with changes" if changed.stdout.strip() else "")
