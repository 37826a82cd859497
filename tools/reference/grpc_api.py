# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the gRPC APIs, from the contracts in ``proto/`` and their comments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from google.protobuf import descriptor_pb2

from tools import contract

from .markdown import page, paragraph, table

_Field = descriptor_pb2.FieldDescriptorProto
# Numbers of the parts of a file in its source info: see descriptor.proto.
_MESSAGE, _ENUM, _SERVICE, _NESTED, _NESTED_ENUM = 4, 5, 6, 3, 4


class _Api(NamedTuple):
    file: str
    name: str
    proto: str
    introduction: str


_APIS = (
    _Api(
        "user-api",
        "User API",
        "vipuuser.proto",
        "This page is for authors of programs that use partitions. The API is the public one of Graphcore, and its"
        " contract never changes. The controller serves it on port 8090.",
    ),
    _Api(
        "admin-api",
        "Admin API",
        "openipu/vipu/admin/v1/admin.proto",
        "This page is for authors of programs that manage a POD. The API belongs to the open controller."
        " Graphcore's controller does not have it.",
    ),
    _Api(
        "agent-api",
        "Agent API",
        "openipu/vipu/agent/v1/agent.proto",
        "This page is for developers. The controller and its agents use this API. It changes between releases.",
    ),
    _Api(
        "twin-api",
        "Twin API",
        "openipu/twin/v1/twin.proto",
        "This page is for developers. The program `twin` controls a running twin with this API.",
    ),
)


class _File:
    """A compiled contract with its comments."""

    def __init__(self, proto: str) -> None:
        self.file = next(each for each in contract.descriptors((proto,), "--include_source_info") if each.name == proto)
        self._comments = {
            tuple(spot.path): " ".join((spot.leading_comments + spot.trailing_comments).split())
            for spot in self.file.source_code_info.location
        }
        self.own = f".{self.file.package}."

    def comment(self, *path: int) -> str:
        """Return the comment of the element at a path of numbers."""
        return self._comments.get(path, "")

    def messages(self) -> Iterator[tuple[tuple[int, ...], str, Any]]:
        """Yield path, name and descriptor of each message, with nested ones after their owner."""
        for number, message in enumerate(self.file.message_type):
            yield from _nested((_MESSAGE, number), message.name, message)

    def enums(self) -> Iterator[tuple[tuple[int, ...], str, Any]]:
        """Yield path, name and descriptor of each enumeration."""
        for number, enum in enumerate(self.file.enum_type):
            yield (_ENUM, number), enum.name, enum
        for path, name, message in self.messages():
            for number, enum in enumerate(message.enum_type):
                yield (*path, _NESTED_ENUM, number), f"{name}.{enum.name}", enum


def _nested(path: tuple[int, ...], name: str, message: Any) -> Iterator[tuple[tuple[int, ...], str, Any]]:
    if not message.options.map_entry:
        yield path, name, message
    for number, inner in enumerate(message.nested_type):
        yield from _nested((*path, _NESTED, number), f"{name}.{inner.name}", inner)


def pages() -> dict[str, str]:
    """Return the page of each API, by its path in docs/reference."""
    return {f"grpc/{api.file}.md": _page(api) for api in _APIS}


def _page(api: _Api) -> str:
    source = _File(api.proto)
    link = f"[`proto/{api.proto}`](../../../proto/{api.proto})"
    introduction = f"{api.introduction}\n\nPackage `{source.file.package}`, contract {link}."
    return page(api.name, introduction, [*_services(source), *_enums(source), *_messages(source)])


def _services(source: _File) -> Iterator[str]:
    for number, service in enumerate(source.file.service):
        yield f"## Service {service.name}"
        yield paragraph(source.comment(_SERVICE, number))
        rows = [
            (
                f"`{method.name}`",
                _streamed(method.client_streaming) + _type(method.input_type, source),
                _streamed(method.server_streaming) + _type(method.output_type, source),
                source.comment(_SERVICE, number, 2, index),
            )
            for index, method in enumerate(service.method)
        ]
        yield table(("Method", "Request", "Reply", "Description"), rows)


def _streamed(streamed: bool) -> str:
    return "stream of " if streamed else ""


def _messages(source: _File) -> Iterator[str]:
    yield "## Messages"
    for path, name, message in source.messages():
        yield f"### {name}"
        yield paragraph(source.comment(*path))
        rows = [
            (f"`{field.name}`", _field_type(field, message, source), str(field.number), source.comment(*path, 2, index))
            for index, field in enumerate(message.field)
        ]
        yield table(("Field", "Type", "Number", "Description"), rows) or "It has no fields."


def _enums(source: _File) -> Iterator[str]:
    enums = list(source.enums())
    if enums:
        yield "## Enumerations"
    for path, name, enum in enums:
        yield f"### {name}"
        yield paragraph(source.comment(*path))
        rows = [
            (f"`{value.name}`", str(value.number), source.comment(*path, 2, index))
            for index, value in enumerate(enum.value)
        ]
        yield table(("Value", "Number", "Description"), rows)


def _field_type(field: Any, message: Any, source: _File) -> str:
    entry = next((inner for inner in message.nested_type if field.type_name.endswith(f".{inner.name}")), None)
    if entry is not None and entry.options.map_entry:
        key, value = entry.field
        return f"map of {_single(key, source)} to {_single(value, source)}"
    text = _single(field, source)
    if field.label == _Field.LABEL_REPEATED:
        return f"list of {text}"
    if field.HasField("oneof_index") and not field.proto3_optional:
        return f"{text} (one of `{message.oneof_decl[field.oneof_index].name}`)"
    return f"{text} (optional)" if field.proto3_optional else text


def _single(field: Any, source: _File) -> str:
    if field.type_name:
        return _type(field.type_name, source)
    return f"`{_Field.Type.Name(field.type).removeprefix('TYPE_').lower()}`"


def _type(name: str, source: _File) -> str:
    """Return a type with a link to its section or page."""
    if name.startswith(source.own):
        short = name.removeprefix(source.own)
        return f"[{short}](#{short.replace('.', '').lower()})"
    if name.startswith(".virmgrpc."):
        short = name.removeprefix(".virmgrpc.")
        return f"[virmgrpc.{short}](user-api.md#{short.replace('.', '').lower()})"
    return f"`{name.removeprefix('.')}`"
