# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile requests, generated from the contracts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor as Field

STRINGS = (
    "",
    "..",
    "/",
    "../../../etc/passwd",
    "a\0b",
    "x" * 10_000,
    "a\nb",
    "a\u202eb",
    "' OR 1=1 --",
    "%s%n{0}",
    "-rf",
    "ä",
)
NUMBERS = {
    Field.CPPTYPE_UINT32: (0, 3, 2**31, 2**32 - 1),
    Field.CPPTYPE_UINT64: (0, 2**64 - 1),
    Field.CPPTYPE_INT32: (-1, -(2**31), 2**31 - 1),
    Field.CPPTYPE_ENUM: (-1, 99, 2**31 - 1),
    Field.CPPTYPE_BOOL: (True, False),
}
MILLION = 10**6
# Status codes of internal errors and of missing servers.
BROKEN = {
    grpc.StatusCode.UNKNOWN,
    grpc.StatusCode.INTERNAL,
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.DATA_LOSS,
}


@dataclass(frozen=True)
class Method:
    """A method that can be called with arbitrary bytes."""

    path: str
    request: type[Any]
    streaming: bool
    metadata: tuple[tuple[str, str], ...] = ()

    def call(
        self,
        channel: grpc.Channel,
        data: bytes,
        timeout: float = 20.0,
        metadata: Sequence[tuple[str, str | bytes]] = (),
    ) -> tuple[grpc.StatusCode, str]:
        """Send bytes and return status code and message. Read only the first reply of a stream."""
        metadata = (*self.metadata, *metadata)
        if self.streaming:
            stream = channel.unary_stream(self.path, None, None)(data, timeout=timeout, metadata=metadata)
            try:
                next(stream)
            except grpc.RpcError as error:
                return error.code(), error.details() or ""
            stream.cancel()
            return grpc.StatusCode.OK, ""
        try:
            channel.unary_unary(self.path, None, None)(data, timeout=timeout, metadata=metadata)
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        return grpc.StatusCode.OK, ""

    def check(self, channel: grpc.Channel, data: bytes, what: str) -> grpc.StatusCode:
        """Send bytes and check that the status code is regular and the message printable."""
        code, details = self.call(channel, data)
        context = f"{self.path} with {what}: {code.name} {details!r}"
        assert code not in BROKEN, context
        assert details.isprintable() and len(details) < 1000, context
        assert code is grpc.StatusCode.OK or details, context
        return code


def methods(*services: Any) -> list[Method]:
    """Return all methods of some services (descriptors)."""
    return [
        Method(
            f"/{service.full_name}/{method.name}",
            message_factory.GetMessageClass(method.input_type),
            method.server_streaming,
        )
        for service in services
        for method in service.methods
    ]


def plausible(kind: type[Any], id: str = "a1") -> Any:
    """Return a message with a plausible value in every field, and this id in fields of text."""
    message = kind()
    for field in message.DESCRIPTOR.fields:
        if field.cpp_type == Field.CPPTYPE_MESSAGE:
            inner = plausible(message_factory.GetMessageClass(field.message_type), id)
            if field.is_repeated:
                getattr(message, field.name).append(inner)
            else:
                getattr(message, field.name).CopyFrom(inner)
            continue
        value: Any = 1
        if field.cpp_type == Field.CPPTYPE_STRING:
            value = "127.0.0.9" if field.name == "host" else id
        elif field.cpp_type == Field.CPPTYPE_BOOL:
            value = False
        _put(message, field, value)
    return message


def variants(kind: type[Any]) -> Iterator[tuple[str, Any]]:
    """Yield plausible messages with one hostile value each, and a description of the value."""
    valid = plausible(kind)
    yield "nothing wrong", valid
    for path in _leaves(valid):
        for value in _hostile(path[-1]):
            message = kind()
            message.CopyFrom(valid)
            inner = message
            for field in path[:-1]:
                inner = getattr(inner, field.name)
                inner = inner[0] if field.is_repeated else inner
            _put(inner, path[-1], value)
            yield f"{'.'.join(field.name for field in path)}={str(value)[:30]!r}", message


def long_lists(kind: type[Any]) -> Iterator[tuple[str, bytes]]:
    """Yield encoded messages with a million elements in one list each."""
    for field in kind.DESCRIPTOR.fields:
        inner = None
        if field.cpp_type == Field.CPPTYPE_MESSAGE:
            inner = message_factory.GetMessageClass(field.message_type)
            for name, data in long_lists(inner):
                yield f"{field.name}.{name}", _delimited(field, data)
        if field.is_repeated:
            if inner is not None:
                yield field.name, _delimited(field, b"") * MILLION
            elif field.cpp_type == Field.CPPTYPE_STRING:
                yield field.name, _delimited(field, b"a") * MILLION
            else:
                yield field.name, _delimited(field, b"\x01" * MILLION)  # packed


def noise(kind: type[Any], generator: random.Random, count: int) -> Iterator[bytes]:
    """Yield random bytes, and valid messages that are truncated or have some changed bytes."""
    valid = plausible(kind).SerializeToString()
    for _ in range(count):
        yield generator.randbytes(generator.randint(1, 300))
        if valid:
            yield valid[: generator.randrange(len(valid))]
            changed = bytearray(valid)
            for _ in range(generator.randint(1, 4)):
                changed[generator.randrange(len(changed))] = generator.randrange(256)
            yield bytes(changed)


def _hostile(field: Any) -> Sequence[Any]:
    return STRINGS if field.cpp_type == Field.CPPTYPE_STRING else NUMBERS.get(field.cpp_type, ())


def _leaves(message: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for field in message.DESCRIPTOR.fields:
        if field.cpp_type == Field.CPPTYPE_MESSAGE:
            inner = getattr(message, field.name)
            yield from _leaves(inner[0] if field.is_repeated else inner, (*before, field))
        else:
            yield (*before, field)


def _put(message: Any, field: Any, value: Any) -> None:
    if field.type == Field.TYPE_BYTES:
        value = value.encode()
    if field.is_repeated:
        getattr(message, field.name)[:] = [value]
    else:
        setattr(message, field.name, value)


def _delimited(field: Any, data: bytes) -> bytes:
    return _varint(field.number << 3 | 2) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])
