"""One Spark application: does cases' work, and says on standard output when each begins and ends.

It waits for a line on standard input behind each word, so that whoever measures can look.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from versus.spark.cases import CASES, Case, in_turn
from versus.spark.work import Session, Work

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main() -> None:
    order = json.loads(sys.argv[1])
    said = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    cases = [CASES[name] for name in order["cases"]]

    def session() -> SparkSession:
        return open_spark(order["jars"])

    if cases[0].prepare is not None:
        cases[0].prepare(given(cases[0], order, "prepared"))
    for case in cases:
        if case.warm:
            do(case, session, order, f"warm {case.name}")
    for turn, case in in_turn(cases):
        print("begin", file=said, flush=True)
        sys.stdin.readline()
        do(case, session, order, f"{turn} {case.name}")
        print("end", file=said, flush=True)
        sys.stdin.readline()  # what ended here must still be there to be looked at


def do(case: Case, session: Session, order: dict[str, str], name: str) -> None:
    case.do(session, given(case, order, name))


def given(case: Case, order: dict[str, str], name: str) -> Work:
    folder = Path(order["folder"])
    (folder / name).mkdir()
    return Work(order["address"], case.topic.name, folder / name, folder / "prepared")


def open_spark(jars: str) -> SparkSession:
    """A session as a user has it: Java's heap and its compilers by default, and as docs/spark.md
    advises.
    """
    from pyspark.sql import SparkSession  # only where a case needs it

    from penstock.pipeline.session import ARROW_OPTIONS, READS  # as above

    builder = SparkSession.builder.master("local[2]").appName("versus")
    builder = builder.config("spark.jars", jars).config("spark.ui.enabled", "false")
    builder = builder.config("spark.driver.bindAddress", "127.0.0.1")
    builder = builder.config("spark.driver.extraJavaOptions", ARROW_OPTIONS)
    for key, value in READS.items():
        builder = builder.config(key, value)
    return builder.config("spark.driver.host", "127.0.0.1").getOrCreate()


if __name__ == "__main__":
    main()
