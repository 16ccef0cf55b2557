"""The .proto files and the modules that are compiled from them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from penstock.pulsar.wire import pulsar_api_pb2
from penstock.records.pulsar import metadata_pb2

SOURCE = Path(__file__).parents[2] / "src"
MODULES = [metadata_pb2, pulsar_api_pb2]


def test_each_message_is_declared_once() -> None:
    declared = Counter(
        name
        for proto in SOURCE.rglob("*.proto")
        for name in re.findall(r"^message (\w+)", proto.read_text(), re.MULTILINE)
    )
    assert {"KeyValue", "MessageMetadata", "CommandSend"} <= set(declared)
    assert [name for name, times in declared.items() if times > 1] == []


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.DESCRIPTOR.name)
def test_what_is_committed_is_what_the_declaration_compiles_to(module: Any, tmp_path: Path) -> None:
    name, out = module.DESCRIPTOR.name, tmp_path / "compiled"
    compiler = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(SOURCE)]
    subprocess.run([*compiler, f"--descriptor_set_out={out}", name], check=True)
    (compiled,) = FileDescriptorSet.FromString(out.read_bytes()).file
    committed = FileDescriptorProto.FromString(module.DESCRIPTOR.serialized_pb)
    # The names in JSON follow from the others; modules are compiled without them.
    assert re.sub(r" *json_name: .*\n", "", str(compiled)) == str(committed)
