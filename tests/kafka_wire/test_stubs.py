"""What type checkers are told of the messages is what the schemas say."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from penstock.kafka.wire import APIS, AnyApi
from penstock.kafka.wire.apis import MESSAGES
from penstock.kafka.wire.stubs import stubs

SOURCE = Path(__file__).parents[2] / "src"

PRELUDE = """\
from penstock.kafka.wire import api, decode_response, encode_response
from penstock.kafka.wire.messages import ProduceRequest, ProduceResponse

PRODUCE = api("Produce")
request = PRODUCE.request(acks=-1, topic_data=[PRODUCE.request.TopicProduceData(name="a")])
part = PRODUCE.request.PartitionProduceData(index=1, records=[b"one", b"two"])
answer: ProduceResponse = decode_response(PRODUCE, 9, b"")[1]

def size(part: ProduceRequest.PartitionProduceData) -> int:
    return len(part.records or b"")

"""
REFUSED = {
    "PRODUCE.request(ack=-1)": 'Unexpected keyword argument "ack"',
    "PRODUCE.request(acks=None)": 'Argument "acks" to "ProduceRequest" has incompatible type',
    "PRODUCE.request.TopicProduceData(nme='a')": 'Unexpected keyword argument "nme"',
    "PRODUCE.request.TopicProduceData('a')": "Too many positional arguments",
    "PRODUCE.request.TopicProduceResponse()": '"ProduceRequestType" has no attribute',
    "request.topic": '"ProduceRequest" has no attribute "topic"',
    "request.topic_data[0].nme": '"TopicProduceData" has no attribute "nme"',
    "request.acks = '1'": "Incompatible types in assignment",
    "request.ack = 1": '"ProduceRequest" has no attribute "ack"',
    "request.transactional_id.upper()": 'Item "None" of "str | None" has no attribute "upper"',
    "part.records = 1": "Incompatible types in assignment",
    "size(answer)": 'Argument 1 to "size" has incompatible type "ProduceResponse"',
    "encode_response(PRODUCE, 9, 1, request)": "Cannot infer",
    'api("Prodcue")': 'No overload variant of "api"',
}
"""Mistakes, each a line of its own, and how mypy names them."""


def test_the_stubs_are_those_of_the_schemas() -> None:
    committed = {path.name: path.read_text(encoding="utf-8") for path in MESSAGES.glob("*.pyi")}
    assert committed == stubs(), "a schema or the generator was changed: run `make stubs`"


@pytest.mark.parametrize("each", APIS, ids=lambda each: each.name)
def test_a_stub_has_the_classes_and_fields_of_run_time(each: AnyApi) -> None:
    (path,) = MESSAGES.glob(f"api_{each.key:02}_*.pyi")
    classes = {
        node.name: node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    }
    for message_type in (each.request, each.response):
        root = classes[message_type.root.name]
        structs = [root, *(node for node in root.body if isinstance(node, ast.ClassDef))]
        for struct in structs:
            fields = [
                node.target.id
                for node in struct.body
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            ]
            assert tuple(fields) == getattr(message_type, struct.name).field_names


def test_mypy_refuses_what_no_message_has(tmp_path: Path) -> None:
    snippet = tmp_path / "snippet.py"
    snippet.write_text(PRELUDE + "\n".join(REFUSED) + "\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    found = subprocess.run(
        [*command, "--follow-imports=silent", str(snippet)],
        env={**os.environ, "MYPYPATH": str(SOURCE)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    first = PRELUDE.count("\n") + 1
    for number, (line, message) in enumerate(REFUSED.items(), start=first):
        assert f"snippet.py:{number}: error: {message}" in found, f"{line}\n{found}"
    assert f"Found {len(REFUSED)} errors in 1 file" in found, found
