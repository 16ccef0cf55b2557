"""This checkout against another one: the same benchmarks in turn, and the ratios of their medians.

    git worktree add ../before main~20
    python benchmarks/against.py ../before throughput request_cost --rounds 5

A machine's speed drifts by more than most changes are worth, so figures of two days don't compare:
both run here, one after the other, round by round, and the order turns in every round. A benchmark
that the other checkout lacks is taken from this one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

THIS = Path(__file__).parents[1]
BENCHMARKS = ("startup", "throughput", "request_cost")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("other", type=Path, help="the checkout to compare with")
    parser.add_argument("benchmarks", nargs="*", default=BENCHMARKS, help=" ".join(BENCHMARKS))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    trees = {"other": arguments.other.resolve(), "this": THIS}
    found: dict[str, dict[str, list[float]]] = {"other": {}, "this": {}}
    with tempfile.TemporaryDirectory(prefix="penstock-against-") as folder:
        scripts = {name: copied(tree, Path(folder) / name) for name, tree in trees.items()}
        for tree in trees.values():
            run(tree, "-m", module_that_compiles(tree))
        for number in range(arguments.rounds):
            for name in sorted(trees, reverse=bool(number % 2)):
                for benchmark in arguments.benchmarks:
                    for title, value in measured(trees[name], scripts[name], benchmark).items():
                        found[name].setdefault(title, []).append(value)
            print(f"round {number + 1} of {arguments.rounds}", file=sys.stderr)
    show(found["other"], found["this"])


def copied(tree: Path, folder: Path) -> Path:
    """Put a checkout's benchmarks where their results disturb nobody's saved ones."""
    shutil.copytree(THIS / "benchmarks", folder, ignore=shutil.ignore_patterns("results", "versus"))
    for script in (tree / "benchmarks").glob("*.py"):
        shutil.copy(script, folder)
    return folder


def module_that_compiles(tree: Path) -> str:
    """Name what compiles the kernels ahead, which has moved twice."""
    if (tree / "src" / "kernel_compiler").is_dir():
        return "kernel_compiler"
    found = next((tree / "src" / "penstock" / "records").rglob("compile.py"))
    return ".".join(found.relative_to(tree / "src").with_suffix("").parts)


def measured(tree: Path, scripts: Path, benchmark: str) -> dict[str, float]:
    """Run one benchmark of one checkout; return its numbers by their names."""
    run(tree, str(scripts / f"{benchmark}.py"), "--save")
    result = scripts / "results" / f"bench-{benchmark.replace('_', '-')}.json"
    numbers: dict[str, float] = json.loads(result.read_text())
    return numbers


def run(tree: Path, *words: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    subprocess.run([sys.executable, *words], env=environment, check=True, stdout=subprocess.DEVNULL)


def show(other: dict[str, list[float]], this: dict[str, list[float]]) -> None:
    """One line a number: both medians, their ratio, and the range of the ratios round by round."""
    print(f"{'median of each':44}{'other':>10}{'this':>10}{'this/other':>12}{'from':>8}{'to':>8}")
    for title, now in this.items():
        before = other[title]
        ratios = [b / a for a, b in zip(before, now, strict=True) if a] or [float("nan")]
        ratio = statistics.median(now) / (statistics.median(before) or float("nan"))
        print(
            f"{title:44}{statistics.median(before):10.3g}{statistics.median(now):10.3g}"
            f"{ratio:12.3f}{min(ratios):8.2f}{max(ratios):8.2f}"
        )


if __name__ == "__main__":
    main()
