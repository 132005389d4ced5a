"""Containers of nothing but busybox, with Podman and with Docker."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

NAME = f"inodyne-try-{os.getpid()}"


def answers(client):
    return subprocess.run([*client, "version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


@contextlib.contextmanager
def service(unit, command, client):
    """A service of systemd, from when the client gets an answer of it."""
    subprocess.run(["systemd-run", "--quiet", "--collect", f"--unit={unit}", *command], check=True)
    try:
        end = time.monotonic() + 120
        while not answers(client):
            if time.monotonic() > end:
                raise TimeoutError(f"{command[0]} does not answer")
            time.sleep(0.1)
        yield
    finally:
        subprocess.run(["systemctl", "stop", unit], check=True)


@contextlib.contextmanager
def podman_service(scratch):
    """A client of Podman's service, which runs meanwhile."""
    socket = f"unix://{scratch}/podman.sock"
    client = ["podman", "--remote", "--url", socket]
    with service(f"{NAME}-podman", ["podman", "system", "service", "-t", "0", socket], client):
        yield client


@contextlib.contextmanager
def docker(_):
    """A client of Docker's daemon, which is started where there is none."""
    client = ["docker"]
    with contextlib.ExitStack() as started:
        if not answers(client):
            daemon = ["dockerd", "--iptables=false", "--bridge=none", "--storage-driver=vfs"]
            started.enter_context(service(f"{NAME}-docker", daemon, client))
        yield client


@contextlib.contextmanager
def image(client, scratch, programs):
    """An image with these of busybox's programs, by its name."""
    root = scratch / "root"
    for directory in ("bin", "proc", "sys", "dev"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    shutil.copy(shutil.which("busybox"), root / "bin" / "busybox")
    for program in programs:
        with contextlib.suppress(FileExistsError):
            (root / "bin" / program).symlink_to("busybox")
    packed = subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE)
    subprocess.run([*client, "import", "-", NAME], check=True, stdin=packed.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    packed.stdout.close()
    packed.wait()
    try:
        yield NAME
    finally:
        subprocess.run([*client, "rmi", "--force", NAME], check=True, stdout=subprocess.DEVNULL)


@contextlib.contextmanager
def container(client, name, mounted, command):
    """One that runs the command meanwhile, without a network, with a directory where it is outside; its id, and the command's process."""
    run = [*client, "run", "--detach", "--name", name, "--network", "none", "-v", f"{mounted}:{mounted}", NAME, *command]
    subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
    try:
        asked = [*client, "inspect", "--format", "{{.Id}} {{.State.Pid}}", name]
        number, pid = subprocess.run(asked, check=True, stdout=subprocess.PIPE, text=True).stdout.split()
        yield number, int(pid)
    finally:
        subprocess.run([*client, "rm", "--force", name], check=True, stdout=subprocess.DEVNULL)
