"""What Python calls: a function of an extension module in front of each kernel.

Written in LLVM's language instead of C, because building Penstock takes no C compiler. An entry
checks that each array is what the kernel's annotation says, by the fields that numpy's headers show
to every extension (`PyArrayObject`, `PyArray_Descr`), and runs the kernel: without the GIL where
that may take a while. The functions of Python that it calls belong to its stable ABI from 3.11 on.
"""

from __future__ import annotations

from typing import Any, Final

from numba import types

from penstock.records.kernels import library

_types: Any = types
_CONTIGUOUS_AND_ALIGNED: Final = 0x1 | 0x100
_WRITABLE: Final = 0x400
_ELEMENTS: Final = {_types.uint8: b"uB|", _types.int64: b"il=", _types.boolean: b"b?|"}
"""Kind, type and byte order, as `PyArray_Descr` has them one behind the other."""
_SIZES: Final = {_types.uint8: 1, _types.int64: 8, _types.boolean: 1}
_FASTCALL: Final = 0x80
_METHOD: Final = "{ptr, ptr, i32, ptr}"
_ABI_VERSION: Final = 3
_RAISED: Final = -1
"""What a function of numba returns where it would raise something."""
_LONG_BYTES: Final = 64 << 10
"""A kernel that is given so much releases the GIL. What others do is done sooner, within some tens
of microseconds, than they would have the GIL back from a thread that has waited for it."""

_SHARED: Final = """
@array_type = internal global ptr null
@PyExc_SystemError = external global ptr
@PyExc_TypeError = external global ptr
@_Py_NoneStruct = external global i8

declare ptr @PyErr_Format(ptr, ptr, ...)
declare ptr @PyErr_Occurred()
declare void @PyEval_RestoreThread(ptr)
declare ptr @PyEval_SaveThread()
declare ptr @PyImport_ImportModule(ptr)
declare i64 @PyLong_AsLongLong(ptr)
declare ptr @PyLong_FromLongLong(i64)
declare ptr @PyLong_FromUnsignedLongLong(i64)
declare i32 @PyModule_AddStringConstant(ptr, ptr, ptr)
declare ptr @PyModule_Create2(ptr, i32)
declare ptr @PyObject_GetAttrString(ptr, ptr)
declare void @Py_IncRef(ptr)

; Whether an object is an array of this many dimensions with these flags set, whose elements have
; this kind, type and byte order. If not, an error is set that names the argument.
define internal i1 @take_array(
    ptr %object, i32 %elements, i32 %dimensions, i32 %flags, ptr %name, i64 %place) {
  %type.at = getelementptr i8, ptr %object, i64 8
  %type = load ptr, ptr %type.at
  %array.type = load ptr, ptr @array_type
  %is.array = icmp eq ptr %type, %array.type
  br i1 %is.array, label %look, label %refuse
look:
  %dimensions.at = getelementptr i8, ptr %object, i64 24
  %its.dimensions = load i32, ptr %dimensions.at
  %same.dimensions = icmp eq i32 %its.dimensions, %dimensions
  %descr.at = getelementptr i8, ptr %object, i64 56
  %descr = load ptr, ptr %descr.at
  %elements.at = getelementptr i8, ptr %descr, i64 24
  %four.bytes = load i32, ptr %elements.at
  %its.elements = and i32 %four.bytes, 16777215
  %same.elements = icmp eq i32 %its.elements, %elements
  %flags.at = getelementptr i8, ptr %object, i64 64
  %its.flags = load i32, ptr %flags.at
  %these.flags = and i32 %its.flags, %flags
  %same.flags = icmp eq i32 %these.flags, %flags
  %same.kind = and i1 %same.dimensions, %same.elements
  %fits = and i1 %same.kind, %same.flags
  br i1 %fits, label %take, label %refuse
take:
  ret i1 true
refuse:
  %error = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr @text.array, ptr %name, i64 %place)
  ret i1 false
}

; Whether an object is a whole number of 64 bits, which is stored. If not, an error is set.
define internal i1 @take_number(ptr %object, ptr %number) {
  %taken = call i64 @PyLong_AsLongLong(ptr %object)
  store i64 %taken, ptr %number
  %maybe = icmp eq i64 %taken, -1
  br i1 %maybe, label %look, label %take
look:
  %error = call ptr @PyErr_Occurred()
  %no.error = icmp eq ptr %error, null
  ret i1 %no.error
take:
  ret i1 true
}

define internal i1 @take_count(i64 %count, i64 %wanted, ptr %name) {
  %same = icmp eq i64 %count, %wanted
  br i1 %same, label %take, label %refuse
take:
  ret i1 true
refuse:
  %error = load ptr, ptr @PyExc_TypeError
  call ptr (ptr, ptr, ...) @PyErr_Format(
    ptr %error, ptr @text.count, ptr %name, i64 %wanted, i64 %count)
  ret i1 false
}
"""
_TEXTS: Final = {
    "array": "%s(): argument %zd is no array of the type, shape and layout that it takes",
    "count": "%s() takes %zd arguments, not %zd",
    "ndarray": "ndarray",
    "numpy": "numpy",
    "raised": "%s() raised an error, which no kernel may",
    "source": "source",
}

_ENTRY: Final = """
declare i32 @"{kernel}"({types})

define internal ptr @"entry.{name}"(ptr %self, ptr %arguments, i64 %count) {{
  %result = alloca i64
  %raised = alloca ptr
{slots}  %right.count = call i1 @take_count(i64 %count, i64 {count}, ptr @"text.{name}")
  br i1 %right.count, label %take.0, label %refuse
{taken}take.{count}:
{measured}  %is.long = icmp uge i64 %bytes.{count}, {long}
  br i1 %is.long, label %apart, label %here
apart:
  %thread = call ptr @PyEval_SaveThread()
  %status.apart = call i32 @"{kernel}"({values})
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
here:
  %status.here = call i32 @"{kernel}"({values})
  br label %done
done:
  %status = phi i32 [%status.apart, %apart], [%status.here, %here]
  %has.raised = icmp eq i32 %status, {raised}
  br i1 %has.raised, label %raise, label %return
return:
{returned}
raise:
  %error = load ptr, ptr @PyExc_SystemError
  call ptr (ptr, ptr, ...) @PyErr_Format(ptr %error, ptr @text.raised, ptr @"text.{name}")
  br label %refuse
refuse:
  ret ptr null
}}
"""
_TAKE: Final = """take.{place}:
  %a{place}.at = getelementptr ptr, ptr %arguments, i64 {place}
  %a{place} = load ptr, ptr %a{place}.at
"""
_TAKE_NUMBER: Final = """  %a{place}.fits = call i1 @take_number(ptr %a{place}, ptr %a{place}.slot)
  %a{place}.number = load i64, ptr %a{place}.slot
  br i1 %a{place}.fits, label %take.{next}, label %refuse
"""

_MODULE: Final = """
@methods = internal global [{count} x {method}] [{methods}]
@definition = internal global {{i64, ptr, ptr, i64, ptr, ptr, ptr, i64, ptr, ptr, ptr, ptr, ptr}}
  {{i64 1, ptr null, ptr null, i64 0, ptr null, ptr @text.module, ptr null, i64 -1, ptr @methods,
   ptr null, ptr null, ptr null, ptr null}}

define ptr @PyInit_{module}() {{
  %numpy = call ptr @PyImport_ImportModule(ptr @text.numpy)
  %no.numpy = icmp eq ptr %numpy, null
  br i1 %no.numpy, label %fail, label %import
import:
  %array.type = call ptr @PyObject_GetAttrString(ptr %numpy, ptr @text.ndarray)
  store ptr %array.type, ptr @array_type
  %no.array.type = icmp eq ptr %array.type, null
  br i1 %no.array.type, label %fail, label %make
make:
  %module = call ptr @PyModule_Create2(ptr @definition, i32 {abi})
  %no.module = icmp eq ptr %module, null
  br i1 %no.module, label %fail, label %name
name:
  call i32 @PyModule_AddStringConstant(ptr %module, ptr @text.source, ptr @text.digest)
  ret ptr %module
fail:
  ret ptr null
}}
"""


class Entries:
    """The entries while they are written."""

    def __init__(self) -> None:
        self._written = [_SHARED]
        self._names: list[str] = []
        self._texts = dict(_TEXTS)

    def add(
        self, name: str, kernel: str, types: list[str], result: Any, arguments: list[Any]
    ) -> None:
        """Write the entry that Python calls by `name`.

        `kernel` is the name of what numba compiled, `types` are the LLVM types of what that takes:
        where to put the result and what is raised, then each argument, an array as many.
        """
        taken, values, slots = "", ["ptr %result", "ptr %raised"], ""
        for place, kind in enumerate(arguments):
            taken += _TAKE.format(place=place)
            if isinstance(kind, _types.Array):
                taken += _take_array(place, kind, name)
                values += _passed_array(place, kind)
            else:
                slots += f"  %a{place}.slot = alloca i64\n"
                taken += _TAKE_NUMBER.format(place=place, next=place + 1)
                values += [f"i64 %a{place}.number"]
        assert [value.split()[0] for value in values] == types, f"numba passes {name}'s arguments"
        self._written.append(
            _ENTRY.format(
                kernel=kernel,
                name=name,
                types=", ".join(types),
                slots=slots,
                count=len(arguments),
                taken=taken,
                measured=_measured(arguments),
                long=_LONG_BYTES,
                values=", ".join(values),
                raised=_RAISED,
                returned=_RETURNED[result],
            )
        )
        self._names.append(name)
        self._texts[name] = name

    def module(self, digest: str) -> str:
        """Return the text of the extension module, whose `source` is `digest`."""
        methods = [
            f'{_METHOD} {{ptr @"text.{name}", ptr @"entry.{name}", i32 {_FASTCALL}, ptr null}}'
            for name in self._names
        ]
        methods.append(f"{_METHOD} zeroinitializer")
        self._texts |= {"module": library.MODULE, "digest": digest}
        start = _MODULE.format(
            count=len(methods),
            method=_METHOD,
            methods=", ".join(methods),
            module=library.MODULE,
            abi=_ABI_VERSION,
        )
        texts = [_constant(name, text) for name, text in self._texts.items()]
        return "\n".join([*texts, *self._written, start])


_RETURNED: Final = {
    _types.void: "  call void @Py_IncRef(ptr @_Py_NoneStruct)\n  ret ptr @_Py_NoneStruct",
    **{
        kind: f"  %number = load i64, ptr %result\n"
        f"  %object = call ptr @{function}(i64 %number)\n"
        "  ret ptr %object"
        for kind, function in (
            (_types.int64, "PyLong_FromLongLong"),
            (_types.uint64, "PyLong_FromUnsignedLongLong"),
        )
    },
}


def _take_array(place: int, kind: Any, name: str) -> str:
    elements = int.from_bytes(_ELEMENTS[kind.dtype], "little")
    flags = _CONTIGUOUS_AND_ALIGNED | (_WRITABLE if kind.mutable else 0)
    lines = [
        f"%a{place}.fits = call i1 @take_array(ptr %a{place}, i32 {elements}, i32 {kind.ndim}, "
        f'i32 {flags}, ptr @"text.{name}", i64 {place + 1})',
        f"br i1 %a{place}.fits, label %use.{place}, label %refuse",
    ]
    text = "".join(f"  {line}\n" for line in lines)
    lines = [
        f"%a{place}.data.at = getelementptr i8, ptr %a{place}, i64 16",
        f"%a{place}.data = load ptr, ptr %a{place}.data.at",
        f"%a{place}.shape.at = getelementptr i8, ptr %a{place}, i64 32",
        f"%a{place}.shape = load ptr, ptr %a{place}.shape.at",
    ]
    size = _SIZES[kind.dtype]
    for axis in range(kind.ndim):
        lines += [
            f"%a{place}.length.{axis}.at = getelementptr i64, ptr %a{place}.shape, i64 {axis}",
            f"%a{place}.length.{axis} = load i64, ptr %a{place}.length.{axis}.at",
        ]
    if kind.ndim == 2:
        lines += [
            f"%a{place}.items = mul i64 %a{place}.length.0, %a{place}.length.1",
            f"%a{place}.stride = mul i64 %a{place}.length.1, {size}",
        ]
    lines.append(f"br label %take.{place + 1}")
    return text + f"use.{place}:\n" + "".join(f"  {line}\n" for line in lines)


def _measured(arguments: list[Any]) -> str:
    """How many bytes all arrays have together."""
    lines = ["%bytes.0 = add i64 0, 0"]
    for place, kind in enumerate(arguments):
        is_array = isinstance(kind, _types.Array)
        added = f"%a{place}.bytes" if is_array else "0"
        if is_array:
            lines.append(f"{added} = mul i64 {_items(place, kind)}, {_SIZES[kind.dtype]}")
        lines.append(f"%bytes.{place + 1} = add i64 %bytes.{place}, {added}")
    return "".join(f"  {line}\n" for line in lines)


def _items(place: int, kind: Any) -> str:
    return f"%a{place}.items" if kind.ndim == 2 else f"%a{place}.length.0"


def _passed_array(place: int, kind: Any) -> list[str]:
    """What numba makes of an array: no owners, its sizes, its data, its shape and its strides."""
    size = _SIZES[kind.dtype]
    lengths = [f"i64 %a{place}.length.{axis}" for axis in range(kind.ndim)]
    items = f"i64 {_items(place, kind)}"
    strides = [f"i64 %a{place}.stride"] if kind.ndim == 2 else []
    owners = ["ptr null", "ptr null"]
    return [*owners, items, f"i64 {size}", f"ptr %a{place}.data", *lengths, *strides, f"i64 {size}"]


def _constant(name: str, text: str) -> str:
    size = len(text.encode()) + 1
    return f'@"text.{name}" = internal constant [{size} x i8] c"{text}\\00"'
