"""Protobuf: what a message's columns are, and messages as typed rows."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from functools import lru_cache
from graphlib import TopologicalSorter
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from penstock.pipeline.values.cells import Fault
from penstock.pipeline.values.decoding import Decoded, Values
from penstock.pipeline.values.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPILE_SECONDS: Final = 60
LARGEST_UNCHECKED: Final = 32 << 10
"""Bytes of a message above which it is parsed by Protobuf's own library first, which refuses one
that is nested too deeply; the vectorised reader would run out of stack at three times as much."""
_INSTALL: Final = "pip install 'penstock-broker[schemas]'"
_PREFIX: Final = "failed to decode Protobuf message: "


def compile_proto(files: Mapping[str, str], name: str) -> bytes:
    """Return the descriptor set of one of the files, with those that it imports.

    Raises SchemaError.
    """
    if find_spec("grpc_tools") is None:
        raise SchemaError(
            f"a .proto file needs Protobuf's compiler: {_INSTALL}, or give a descriptor set "
            "(protoc --include_imports --descriptor_set_out=FILE.desc)"
        )
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "proto")
        for each, text in files.items():
            path = (root / each).resolve()
            if not path.is_relative_to(root.resolve()):
                raise SchemaError(f"the import {each[:100]!r} is no path inside of its folder")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return _run_protoc(root, name, Path(folder, "out.desc"))


def compile_file(path: Path) -> bytes:
    """Return the descriptor set of a .proto file, which imports others from its folder."""
    if find_spec("grpc_tools") is None:
        return compile_proto({}, path.name)
    with tempfile.TemporaryDirectory() as folder:
        return _run_protoc(path.parent.resolve(), path.name, Path(folder, "out.desc"))


def _run_protoc(root: Path, name: str, out: Path) -> bytes:
    import grpc_tools  # type: ignore[import-untyped]  # noqa: PLC0415  # of the extra `schemas`

    known = Path(grpc_tools.__file__).parent / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{root}", f"-I{known}"]
    command += ["--include_imports", f"--descriptor_set_out={out}", name]
    try:
        ended = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise SchemaError(f"protoc took more than {COMPILE_SECONDS} s for {name}") from None
    if ended.returncode or not out.exists():
        said = " ".join(ended.stderr.split())[:300]
        raise SchemaError(f"protoc does not take {name}: {said}")
    return out.read_bytes()


def native_descriptors(definition: str) -> tuple[bytes, str]:
    """Return the descriptor set and the message of one of Pulsar's schemas of this kind.

    The message's file is the last one, whichever order its client put them in. Raises SchemaError.
    """
    from google.protobuf import descriptor_pb2  # noqa: PLC0415  # only of Pulsar's schemas

    ordered = descriptor_pb2.FileDescriptorSet()
    try:
        said = json.loads(definition)
        packed = base64.b64decode(said["fileDescriptorSet"])
        message, root = str(said["rootMessageTypeName"]), said["rootFileDescriptorName"]
        files = {each.name: each for each in ordered.FromString(packed).file}
        imports = TopologicalSorter({name: each.dependency for name, each in files.items()})
        names = [name for name in imports.static_order() if name in files and name != root]
        ordered.file.extend(files[name] for name in [*names, root])
    except Exception as error:  # the library's own kinds differ by version
        raise SchemaError(f"it is no schema of kind PROTOBUF_NATIVE: {error!r:.200}") from None
    return ordered.SerializeToString(), message


def message_columns(descriptors: bytes, message: str | None) -> tuple[str, pa.StructType]:
    """Return the full name of a message and its columns.

    Without a name it is the first message of the last file. Raises SchemaError.
    """
    descriptor = _descriptor(descriptors, message)
    schema = _reader(descriptors, descriptor.full_name).schema()
    return descriptor.full_name, pa.struct(list(schema))


def message_path(descriptors: bytes, message: str) -> tuple[int, ...]:
    """Return where a message stands in its file, as Confluent's wire format names it."""
    from google.protobuf import descriptor_pb2  # noqa: PLC0415  # only of registries

    file = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file[-1]
    known = file.message_type
    path: list[int] = []
    for name in message.removeprefix(f"{file.package}.").split("."):
        path += [index for index, each in enumerate(known) if each.name == name]
        known = known[path[-1]].nested_type
    return tuple(path)


class ProtobufDecoder:
    """See `penstock.pipeline.values.decoding.Decoder`."""

    def __init__(self, descriptors: bytes, message: str) -> None:
        self._reader = _reader(descriptors, message)
        self._struct = pa.struct(list(self._reader.schema()))
        self._message = _message_class(descriptors, message)

    def decode(self, values: Values) -> Decoded:
        faults = self._too_deep(values)
        good = np.ones(values.spans.shape[1], np.bool_)
        good[[each.row for each in faults]] = False
        places = np.flatnonzero(good)
        array = values.chosen(places).binary()
        parts: list[pa.StructArray] = []
        found = self._halved(array, parts)
        faults += [Fault(int(places[each.row]), each.reason) for each in found]
        rows = pa.concat_arrays([pa.array([], self._struct), *parts])
        if not faults:
            return Decoded(rows, [])
        good[[each.row for each in faults]] = False
        taken = np.cumsum(good) - 1
        return Decoded(rows.take(pa.array(taken, mask=~good)), sorted(faults))

    def _too_deep(self, values: Values) -> list[Fault]:
        faults = []
        for row in np.flatnonzero(values.spans[1] > LARGEST_UNCHECKED).tolist():
            start, size = values.spans[:, row].tolist()
            try:
                self._message().ParseFromString(values.data[start : start + size].tobytes())
            except Exception as error:  # the library's own kinds differ by version
                faults.append(Fault(row, f"it is no message: {error}"))
        return faults

    def _halved(self, array: pa.Array, parts: list[pa.StructArray]) -> list[Fault]:
        """Add what can be read to the parts, in order; returns the faults of the rest."""
        faults: list[Fault] = []
        left = [(0, len(array))] if len(array) else []
        while left:
            start, count = left.pop()
            piece = pa.concat_arrays([array.slice(start, count)])
            try:
                parts.append(self._reader.array_to_record_batch(piece).to_struct_array())
            except ValueError as error:
                if count == 1:
                    faults.append(
                        Fault(start, f"it is no message: {str(error).removeprefix(_PREFIX)}")
                    )
                else:
                    half = count // 2
                    left += [(start + half, count - half), (start, half)]
        return faults


@lru_cache(maxsize=100)
def _reader(descriptors: bytes, message: str) -> Any:
    if find_spec("ptars") is None:
        raise SchemaError(f"Protobuf needs the package ptars: {_INSTALL}")
    import ptars  # noqa: PLC0415  # of the extra `schemas`

    config = ptars.PtarsConfig(timestamp_unit="us", duration_unit="us", enum_repr="string")
    descriptor = _descriptor(descriptors, message)
    try:
        pool = ptars.HandlerPool([descriptor.file], config=config)
        return pool.get_for_message(descriptor)
    except (ValueError, TypeError, KeyError) as error:
        raise SchemaError(f"the Protobuf message {message} can't be read: {error}") from None


def _message_class(descriptors: bytes, message: str) -> Any:
    from google.protobuf import message_factory  # noqa: PLC0415  # only where it is needed

    return message_factory.GetMessageClass(_descriptor(descriptors, message))


@lru_cache(maxsize=100)
def _descriptor(descriptors: bytes, message: str | None) -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool  # noqa: PLC0415

    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
        for each in files:
            pool.Add(each)
        last = pool.FindFileByName(files[-1].name)
    except Exception as error:
        raise SchemaError(f"it is no Protobuf descriptor set with all imports: {error}") from None
    names = [f"{last.package}.{each.name}".lstrip(".") for each in files[-1].message_type]
    if message is None and not names:
        raise SchemaError(f"the Protobuf file {last.name} declares no message")
    for name in [names[0]] if message is None else [message, f"{last.package}.{message}"]:
        try:
            return pool.FindMessageTypeByName(name)
        except KeyError:
            continue
    raise SchemaError(
        f"the Protobuf file {last.name} has no message {message}, but {', '.join(names)}"
    )
