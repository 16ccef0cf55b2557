"""The first minutes of somebody new: Penstock is installed in several ways, and used once.

    python benchmarks/newcomer.py            # every way that this machine has
    python benchmarks/newcomer.py 3.11       # one of them

Each way is an environment of its own, with nothing in it but what pip installs. The clients run in
this environment, so that what is measured is the broker. What must be true whatever the machine
does (nothing is compiled, no numba, little memory, the data folder alone is written to) fails the
run; times are shown beside what a newcomer waited before the kernels were compiled ahead.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from apache_iggy import Consumer, IggyClient, PollingStrategy, SendMessage
from confluent_kafka import Producer

ROOT = Path(__file__).parents[1]
MIB = 1 << 20
RESIDENT_MIB_MAX = 100
"""After the first conversion."""
INSTALLED_MB_MAX = 300
NOBODY = 65534
BEFORE = {"first Iggy send, s": 19.0, "first foreign read, s": 20.0, "installed, MB": 360.0}
"""What the same steps came to when each machine compiled the kernels for itself."""
LOWEST_LEVEL = (
    "from penstock.records.kernels import library\n"
    "library.processor_features = frozenset\n"
    "from penstock.cli import main\n"
    "main()\n"
)


@dataclass(frozen=True)
class Way:
    """One way to install and start it."""

    name: str
    version: str
    """Of Python."""
    from_wheel: bool = True
    without_home: bool = False
    """As a user who may write nowhere but into the data folder."""
    on_lowest_level: bool = False
    """On a processor that has none of the features that the build's has."""


WAYS = (
    Way("3.11", "3.11", from_wheel=False),
    Way("3.12", "3.12"),
    Way("3.13", "3.13"),
    Way("no-home", "3.11", without_home=True),
    Way("other-cpu", "3.11", on_lowest_level=True),
)


class BrokenPromiseError(Exception):
    """Something that has to be true on every machine is not."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = [way.name for way in WAYS]
    parser.add_argument("ways", nargs="*", choices=[*names, []], metavar="WAY")
    chosen = parser.parse_args().ways or names
    with tempfile.TemporaryDirectory(prefix="penstock-newcomer-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # another user starts what is installed in it
        wheel = built_wheel(exported(folder / "source"), folder / "wheel")
        for way in WAYS:
            if way.name in chosen:
                show(way.name, tried(way, wheel, folder))


def exported(folder: Path) -> Path:
    """Copy what is in the repository, and none of what was built from it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for path in filter(None, listed.split("\0")):
        if (ROOT / path).exists():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
    return folder


def built_wheel(source: Path, folder: Path) -> Path:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", folder, source)
    (wheel,) = folder.glob("*.whl")
    return wheel


def tried(way: Way, wheel: Path, folder: Path) -> dict[str, float] | str:
    """Install and use it one way; return figures, or why this machine can't."""
    if way.without_home and os.geteuid() != 0:
        return "only root can start it as a user that has nothing"
    interpreter = found_interpreter(way)
    if interpreter is None:
        return f"there is no Python {way.version}" + " for all" * way.without_home
    environment = folder / way.name
    began = time.perf_counter()
    run(interpreter, "-m", "venv", environment)
    what = wheel if way.from_wheel else folder / "source"
    run(environment / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", what)
    numbers = {"installation, s": time.perf_counter() - began}
    numbers["installed, MB"] = (
        sum(path.stat().st_size for path in environment.rglob("*") if path.is_file()) / 1e6
    )
    check(numbers["installed, MB"] <= INSTALLED_MB_MAX, "the installation is too big")
    began = time.perf_counter()
    run(environment / "bin" / "penstock", "version")
    numbers["penstock version, s"] = time.perf_counter() - began
    for title, step in (
        ("first Iggy send, s", first_send),
        ("first foreign read, s", first_foreign_read),
    ):
        numbers |= used(way, environment, folder / f"{way.name}-{step.__name__}", title, step)
    return numbers


def found_interpreter(way: Way) -> Path | None:
    """Return a Python that can make environments, and that another user can run where one will."""
    name = f"python{way.version}"
    kept = sorted(Path.home().glob(f".pyenv/versions/{way.version}.*/bin/python"))
    for path in [shutil.which(name), shutil.which(name, path="/usr/local/bin:/usr/bin"), *kept]:
        if path is None or (way.without_home and not everybody_can_run(Path(path).resolve())):
            continue
        trial = subprocess.run([path, "-c", "import ensurepip"], check=False, capture_output=True)
        if trial.returncode == 0:
            return Path(path)
    return None


def everybody_can_run(path: Path) -> bool:
    return all(each.stat().st_mode & 0o005 == 0o005 for each in (path, *path.parents))


def used(
    way: Way, environment: Path, data: Path, title: str, step: Callable[[Any], float]
) -> dict[str, float]:
    """Start a broker, do one thing for the first time, and see what it took."""
    data.mkdir()
    data.chmod(0o777)
    began = time.perf_counter()
    with serving(way, environment, data) as (process, listeners):
        ready = time.perf_counter() - began
        at_start = process.memory_info().rss / MIB
        numbers = {"ready, s": ready, "resident when ready, MiB": at_start, title: step(listeners)}
        resident = process.memory_info().rss / MIB
        mapped = Path(f"/proc/{process.pid}/maps").read_text()
        check("numba" not in mapped and "llvm" not in mapped, "a compiler is in the broker")
        check(not process.children(), "the broker has started another process")
        check(resident <= RESIDENT_MIB_MAX, f"the broker holds {resident:.0f} MiB")
        numbers["resident after it, MiB"] = resident
    return numbers


@contextmanager
def serving(
    way: Way, environment: Path, data: Path
) -> Iterator[tuple[psutil.Process, dict[str, str]]]:
    python = environment / "bin" / "python"
    start = ["-c", LOWEST_LEVEL] if way.on_lowest_level else ["-m", "penstock"]
    ports = [word for name in ("kafka", "pulsar", "iggy") for word in (f"--{name}-port", "0")]
    surroundings = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}
    with subprocess.Popen(
        [python, *start, "serve", "--format", "json", "--data-folder", data / "data", *ports],
        env=surroundings,
        cwd=data,
        stdout=subprocess.PIPE,
        stderr=(data / "log").open("w"),
        text=True,
        user=NOBODY if way.without_home else None,
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            check(bool(line), (data / "log").read_text())
            yield psutil.Process(process.pid), json.loads(line)["listeners"]
        finally:
            process.terminate()


def first_send(listeners: dict[str, str]) -> float:
    """Seconds that the first Iggy message takes to be acknowledged."""

    async def send() -> float:
        client = await connected(listeners)
        await client.create_stream("new")
        await client.create_topic("new", "sent", 1)
        began = time.perf_counter()
        await client.send_messages("new", "sent", 0, [SendMessage("first")])
        return time.perf_counter() - began

    return asyncio.run(send())


def first_foreign_read(listeners: dict[str, str]) -> float:
    """Seconds that an Iggy client waits for what a Kafka client wrote."""
    producer = Producer({"bootstrap.servers": listeners["kafka"]})
    producer.produce("read", b"first")
    check(producer.flush(30) == 0, "a Kafka message was not acknowledged")

    async def read() -> float:
        client = await connected(listeners)
        began = time.perf_counter()
        (message,) = await client.poll_messages(
            *("default", "read"),
            partition_id=0,
            consumer=Consumer.Single("reader"),
            polling_strategy=PollingStrategy.First(),
            count=1,
            auto_commit=False,
        )
        seconds = time.perf_counter() - began
        check(message.payload() == b"first", "another message was read")
        return seconds

    return asyncio.run(read())


async def connected(listeners: dict[str, str]) -> IggyClient:
    client = IggyClient.from_connection_string(f"iggy://iggy:iggy@{listeners['iggy']}")
    await client.connect()
    return client


def show(name: str, outcome: dict[str, float] | str) -> None:
    print(f"\n{name}")
    if isinstance(outcome, str):
        print(f"  not tried: {outcome}")
        return
    for title, number in outcome.items():
        ratio = f"   {number / BEFORE[title]:.3f} of before" if title in BEFORE else ""
        print(f"  {title:28}{number:10.2f}{ratio}")


def check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise BrokenPromiseError(otherwise)


def run(*command: str | Path) -> None:
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
