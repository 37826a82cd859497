# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages, stubs and handlers of the contracts in proto/.

``tools/contract.py`` generates the contracts as file descriptors. The factory of protobuf creates the messages
at run time, so one contract works with every protobuf release. One file per API also passes ``ansible-test sanity``
without ignore entries, unlike generated ``_pb2`` files. This file is importable without protobuf.
"""

from __future__ import annotations

import base64
import functools
import typing as t

from .quiet_grpc import HAS_GRPC

try:
    from google.protobuf import descriptor_pool, message_factory, timestamp_pb2

    HAS_PROTOBUF = True
except ImportError:
    HAS_PROTOBUF = False

if HAS_GRPC:
    import grpc

_pool: t.Any = None


def pool() -> t.Any:
    """Return the descriptor pool of all contracts. It is separate from the default pool to avoid clashes."""
    global _pool
    if _pool is None:
        _pool = descriptor_pool.DescriptorPool()
        _pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    return _pool


class Package:
    """Messages and enum values of a protobuf package as attributes, loaded at first use."""

    def __init__(self, name: str, files: tuple[str, ...], requires: tuple[Package, ...] = ()) -> None:
        self._name = name
        self._files = files
        self._requires = requires
        self._loaded = False

    def _load(self) -> None:
        for package in self._requires:
            if not package._loaded:
                package._load()
        names = [pool().AddSerializedFile(base64.b64decode(text)).name for text in self._files]
        for name in names:
            file = pool().FindFileByName(name)
            if file.package == self._name:
                for message in file.message_types_by_name.values():
                    setattr(self, message.name, message_factory.GetMessageClass(message))
                for enum in file.enum_types_by_name.values():
                    setattr(self, enum.name, _Enum(enum))
                    for value in enum.values:
                        setattr(self, value.name, value.number)
        self._loaded = True

    def __getattr__(self, name: str) -> t.Any:
        if self._loaded or name.startswith("__"):
            raise AttributeError(name)
        self._load()
        return getattr(self, name)

    def service(self, name: str) -> t.Any:
        """Return the descriptor of a service of this package."""
        if not self._loaded:
            self._load()
        return pool().FindServiceByName("%s.%s" % (self._name, name))

    def stub(self, channel: t.Any, name: str, metadata: tuple[tuple[str, str], ...] = ()) -> Stub:
        """Return a client of the service on a channel, sync or aio, with one callable per method.

        Every call sends ``metadata``.
        """
        return Stub(channel, self.service(name), metadata)

    def handler(
        self, name: str, servicer: t.Any, serializers: t.Mapping[str, t.Callable[[t.Any], bytes]] | None = None
    ) -> t.Any:
        """Return a generic gRPC handler that calls ``servicer.<Method>(request, context)``.

        ``serializers`` replaces the serializer of single methods (method name to function).
        Every method of the contract must exist on the servicer.
        """
        service = self.service(name)
        methods = {}
        for method in service.methods:
            make = (
                grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
            )
            output = message_factory.GetMessageClass(method.output_type)
            methods[method.name] = make(
                getattr(servicer, method.name),
                request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
                response_serializer=(serializers or {}).get(method.name, output.SerializeToString),
            )
        return grpc.method_handlers_generic_handler(service.full_name, methods)


class Stub:
    """Client of a service: one callable per method, which takes the request message."""

    def __init__(self, channel: t.Any, service: t.Any, metadata: tuple[tuple[str, str], ...] = ()) -> None:
        for method in service.methods:
            kind = channel.unary_stream if method.server_streaming else channel.unary_unary
            request = message_factory.GetMessageClass(method.input_type)
            call = kind(
                "/%s/%s" % (service.full_name, method.name),
                request_serializer=request.SerializeToString,
                response_deserializer=message_factory.GetMessageClass(method.output_type).FromString,
            )
            setattr(self, method.name, functools.partial(call, metadata=metadata) if metadata else call)

    def __getattr__(self, name: str) -> t.Any:
        raise AttributeError(name)


class _Enum:
    """Names and numbers of an enum, with the interface of the wrapper of protobuf."""

    def __init__(self, descriptor: t.Any) -> None:
        self._by_name: dict[str, int] = {value.name: value.number for value in descriptor.values}
        self._by_number: dict[int, str] = {value.number: value.name for value in descriptor.values}

    def Name(self, number: int) -> str:
        """Return the name of a number. An unknown number, from a newer server, is returned as text."""
        return self._by_number.get(number, str(number))

    def Value(self, name: str) -> int:
        """Return the number of a name. Raises ValueError for an unknown name."""
        if name not in self._by_name:
            raise ValueError(name)
        return self._by_name[name]

    def keys(self) -> list[str]:
        """Return all names in the order of the contract."""
        return list(self._by_name)
