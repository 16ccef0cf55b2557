"""Runs the suite and compares what passes with the list of what has to.

The exit code is 1 where a test of `passing.txt` does not pass, and 2 where the suite can't be had.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from librdkafka_suite import runs, source

ROOT: Final = Path(__file__).parents[3]
CACHE: Final = ROOT / "build" / "librdkafka"
PASSING: Final = Path(__file__).with_name("passing.txt")

Wanted = dict[tuple[str, str], list[str]]
"""Names of tests by their number and scenario."""


def main() -> int:
    words = _parser().parse_args()
    try:
        tests = source.obtain(CACHE)
    except source.NotAvailableError as reason:
        print(f"librdkafka's tests can't be had here: {reason}")
        return 2
    declared = source.declared(tests)
    wanted = {key: declared[key] for key in declared if key[0] in (words.numbers or key)}
    results = _run_all(tests, wanted, words.jobs)
    return _judge(results, set(PASSING.read_text().split()))


def _run_all(tests: Path, wanted: Wanted, jobs: int) -> list[runs.Result]:
    def one(key: tuple[str, str]) -> list[runs.Result]:
        results = runs.run(tests, *key, wanted[key], CACHE / "logs")
        for result in results:
            reason = "" if result.state == runs.PASSED else result.reason
            print(f"{result.state:>8}  {result.name}  {reason}", flush=True)
        return results

    with ThreadPoolExecutor(jobs) as pool:
        return [result for results in pool.map(one, wanted) for result in results]


def _judge(results: list[runs.Result], passing: set[str]) -> int:
    passed = {result.name for result in results if result.state == runs.PASSED}
    lost = sorted({result.name for result in results} & passing - passed)
    print(f"{len(passed)} of {len(results)} pass; the output of each is in {CACHE / 'logs'}")
    if new := sorted(passed - passing):
        print(f"Pass now, and belong into {PASSING.name}: {' '.join(new)}")
    if lost:
        print(f"Passed before, and do not now: {' '.join(lost)}")
    return 1 if lost else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make interop-librdkafka")
    parser.add_argument("numbers", nargs="*", help="as 0081; none are all")
    parser.add_argument("--jobs", type=int, default=2, help="tests that run at a time")
    return parser


if __name__ == "__main__":
    sys.exit(main())
