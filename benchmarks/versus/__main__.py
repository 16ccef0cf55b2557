"""Measure Penstock beside the brokers whose protocols it speaks, and write one result file."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from versus import machine, results
from versus.loads import START, Load, chosen
from versus.measure import Layout, Round, run_round
from versus.peers.iggy import Iggy
from versus.peers.kafka import Kafka
from versus.peers.peer import Durability, NotAvailableError, Peer
from versus.peers.penstock import Penstock
from versus.peers.pulsar import Pulsar
from versus.scale import SCALES, Scale

PEERS: Final[dict[str, type[Peer]]] = {"kafka": Kafka, "pulsar": Pulsar, "iggy": Iggy}
BUILD: Final = Path("build/versus").resolve()
LAYOUTS: Final = ("two shared", "one each")
RESULTS: Final = Path("benchmarks/results")


def main() -> None:
    options = arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    scale = SCALES[options.scale]
    if options.rounds:
        scale = Scale(**{**vars(scale), "rounds": options.rounds})
    try:
        loads = chosen(everything=scale.everything, names=options.loads)
    except ValueError as error:
        sys.exit(str(error))
    # What reads across protocols has nobody to be compared with.
    compared = options.protocols if any(not load.writer for load in loads) else []
    peers, missing = obtained(compared)
    for name, reason in missing.items():
        print(f"{name} is not measured: {reason}", flush=True)
    result = described(scale, peers, missing)
    path = options.output or RESULTS / f"versus-{time.strftime('%Y%m%d-%H%M%S')}.json"
    if options.into:
        path = options.into
        result = results.continued(results.load(path), result, [load.name for load in loads])
    for of, these in rounds(options, scale, loads, peers):
        found = measured(of, these, scale)
        result["runs"] += [run for run in found if not options.into or run["load"] != START.name]
        results.save(path, result)
    print(f"\nThe result is in {path}. `make report RESULT={path}` makes its tables and plots.")


def described(scale: Scale, peers: dict[str, Peer], missing: dict[str, str]) -> dict[str, Any]:
    """A result without runs: the machine, the brokers, and what is set for them."""
    return {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "scale": vars(scale),
        **machine.describe(),
        "brokers": {
            peer.name: {
                "version": peer.version,
                "client": peer.client.name.partition("-")[2] if peer.client else None,
                "settings": {str(level): peer.setting(level) for level in Durability},
            }
            for peer in [*peers.values(), penstock()]
        },
        "not_measured": missing,
        "runs": [],
    }


def arguments() -> argparse.Namespace:
    levels = [str(level) for level in Durability]
    parser = argparse.ArgumentParser(prog="make versus", description=__doc__)
    parser.add_argument("--scale", choices=SCALES, default="quick")
    parser.add_argument("--protocols", nargs="+", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--loads", nargs="+", metavar="LOAD", help="only these")
    parser.add_argument("--rounds", type=int, help="starts of each broker of a pair")
    parser.add_argument("--durabilities", nargs="+", choices=levels, default=levels)
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, help="which cores are used")
    place = parser.add_mutually_exclusive_group()
    place.add_argument("--output", type=Path, help="result file")
    place.add_argument("--into", type=Path, help="result file in which these loads are replaced")
    return parser.parse_args()


def penstock() -> Penstock:
    peer = Penstock()
    peer.obtain(BUILD)
    return peer


def obtained(protocols: list[str]) -> tuple[dict[str, Peer], dict[str, str]]:
    """The peers that can be had, by protocol, and the reasons why others can't."""
    peers: dict[str, Peer] = {}
    missing: dict[str, str] = {}
    for protocol in protocols:
        peer = PEERS[protocol]()
        print(f"getting {peer.name} ...", flush=True)
        try:
            peer.obtain(BUILD / "peers")
        except NotAvailableError as error:
            missing[peer.name] = str(error)
        else:
            peers[protocol] = peer
    return peers, missing


def layouts() -> list[Layout]:
    """Two cores for both, and one for each. Raises SystemExit on a machine with one core."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    if len(cpus) < 2:
        sys.exit("a broker and its client need two cores to be compared")
    both = (cpus[0], cpus[1])
    return [Layout(LAYOUTS[0], both, both), Layout(LAYOUTS[1], both[:1], both[1:])]


def rounds(
    options: argparse.Namespace, scale: Scale, loads: list[Load], peers: dict[str, Peer]
) -> Iterator[tuple[Round, list[Load]]]:
    """All rounds in order. The two brokers of a pair take turns, so that drift hits both."""
    shared, apart = layouts()
    quick = [load for load in loads if load.quick]
    names = options.layouts or (list(LAYOUTS) if scale.everything else LAYOUTS[:1])
    for layout, these in ((shared, loads), (apart, quick)):
        if layout.name not in names:
            continue
        for durability in options.durabilities:
            for protocol in options.protocols:
                peer = peers.get(protocol)
                pair = [penstock(), *([peer] if peer else [])]
                client = peer.client if peer else None
                level = Durability(durability)
                for number in range(1, scale.rounds + 1):
                    for side in pair:
                        yield Round(protocol, side, number, level, layout, client), these


def measured(of: Round, loads: list[Load], scale: Scale) -> list[dict[str, Any]]:
    print(" ".join(str(part) for part in of.labels().values()), end=":", flush=True)
    began = time.monotonic()
    runs = []
    try:
        for run in run_round(of, loads, scale, BUILD / "run", lambda name: show(f" {name}")):
            runs.append(run)
            if "failure" in run:
                show(f" FAILED ({run['failure']})")
    except (NotAvailableError, RuntimeError) as error:
        show(f" FAILED ({error})")
        runs.append(of.labels() | {"load": "start", "failure": str(error)[:500]})
    show(f" ({time.monotonic() - began:.0f} s)\n")
    return runs


def show(text: str) -> None:
    print(text, end="", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit("\nstopped; all that was started is ended")
