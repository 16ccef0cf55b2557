"""A file system on a real block device that the kernel itself slows down.

A file becomes a block device (loop), the device gets ext4, and the kernel's throttle lets it do
only so many operations a second (cgroup v1, controller `blkio`, set for all processes): every
write, flush, journal commit and cold read of it queues in the kernel, as on a tired disk. It needs
root, free loop devices and that controller.
"""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SIZE_MIB = 512
SAMPLE_SECONDS = 0.001
_CONTROLLER: Final = Path("/sys/fs/cgroup/blkio")
_SLEEPS: Final = re.compile(r"^State:\s+D", re.MULTILINE)
_SWITCHES: Final = re.compile(r"^\w+_ctxt_switches:\s+(\d+)", re.MULTILINE)
_PROGRAMS: Final = ("losetup", "mkfs.ext4", "mount", "umount")


class NotAvailableError(Exception):
    """Such a device can't be made here; the text says why."""


class SlowDevice:
    """A mounted file system; as fast as what is below it until it is slowed down."""

    def __init__(self, mount: Path, number: str) -> None:
        self.mount = mount
        self._number = number

    @contextlib.contextmanager
    def slow(self, operations_per_second: int) -> Iterator[None]:
        """Let each operation wait for its turn meanwhile."""
        self._limit(operations_per_second)
        try:
            yield
        finally:
            self._limit(0)

    def _limit(self, operations: int) -> None:
        for direction in ("read", "write"):
            limit = _CONTROLLER / f"blkio.throttle.{direction}_iops_device"
            limit.write_text(f"{self._number} {operations}")


@contextlib.contextmanager
def slow_device() -> Iterator[SlowDevice]:
    """Make a device, and remove it with all that is on it. Raises NotAvailableError."""
    for program in _PROGRAMS:
        if shutil.which(program) is None:
            raise NotAvailableError(f"{program} is not installed")
    if not (_CONTROLLER / "blkio.throttle.write_iops_device").exists():
        raise NotAvailableError("the kernel has no throttle of devices (cgroup v1, blkio)")
    with contextlib.ExitStack() as undone:
        # Not in pytest's own folder: it renames and empties those of runs that ended.
        folder = Path(undone.enter_context(tempfile.TemporaryDirectory(prefix="slow-device-")))
        image, mount = folder / "device.img", folder / "device"
        mount.mkdir()
        with image.open("wb") as file:
            file.truncate(SIZE_MIB << 20)
        _run("mkfs.ext4", "-q", str(image))
        device = _run("losetup", "--find", "--show", "--direct-io=on", str(image)).strip()
        undone.callback(_run, "losetup", "--detach", device)
        _run("mount", device, str(mount))
        undone.callback(_run, "umount", "--lazy", str(mount))
        number = (Path("/sys/block") / Path(device).name / "dev").read_text().strip()
        yield SlowDevice(mount, number)


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotAvailableError(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


class Sleeps:
    """Watches one thread for sleeps that nothing interrupts: for a device, or for who holds it.

    Two looks at such a sleep without a switch of contexts between them saw the same one, which
    lasted from the first look to the second at least. So a watcher that gets no processor
    sees too little, and never too much.
    """

    def __init__(self, thread_id: int) -> None:
        self.looks = 0
        self.longest_ms = 0.0
        self.longest_in = ""
        """The kernel's stack in it."""
        self._status = Path(f"/proc/{thread_id}/status")
        self._stack = Path(f"/proc/{thread_id}/stack")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        sleep, began = -1, 0.0
        while not self._ended.wait(SAMPLE_SECONDS):
            now = time.monotonic()
            seen = self._look()
            self.looks += 1
            if seen != sleep:
                sleep, began = seen, now
            elif sleep >= 0 and 1000 * (now - began) > self.longest_ms:
                self.longest_ms = 1000 * (now - began)
                self.longest_in = self._stack.read_text()

    def _look(self) -> int:
        """Return a number of the sleep that the thread is in, or -1."""
        text = self._status.read_text()
        switches = sum(int(each) for each in _SWITCHES.findall(text))
        return switches if _SLEEPS.search(text) else -1
