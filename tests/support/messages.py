"""Stored messages as protobuf's own classes, made from the declarations: a second reader and writer of their bytes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.store.header import Header
from tb_dlprof_plugin.store.layout import Field, fields_of
from tb_dlprof_plugin.store.schema_1 import ProfileOfSchema1

_Proto = descriptor_pb2.FieldDescriptorProto
_TYPES = {int: _Proto.TYPE_INT64, bool: _Proto.TYPE_BOOL, float: _Proto.TYPE_DOUBLE, str: _Proto.TYPE_STRING,
          bytes: _Proto.TYPE_BYTES}  # fmt: skip
_VERSION = {"name": "schema_version", "number": 1, "type": _Proto.TYPE_INT64, "label": _Proto.LABEL_OPTIONAL}


def messages(*kinds: type) -> Any:
    """The classes of these structs and of all inside of them, by their names."""
    file = descriptor_pb2.FileDescriptorProto(name=f"{kinds[0].__name__}.proto", package="stored", syntax="proto3")
    names: list[str] = []

    def add(kind: type) -> None:
        if kind.__name__ in names:
            return
        names.append(kind.__name__)
        message = file.message_type.add(name=kind.__name__)
        if issubclass(kind, Profile):
            message.field.add(**_VERSION)
        for field in fields_of(kind):
            _add_fields(message, field)
            if field.is_message:
                add(field.kind)

    for kind in kinds:
        add(kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    classes = {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"stored.{name}")) for name in names}
    return SimpleNamespace(**classes)


def _add_fields(message: Any, field: Field) -> None:
    label = _Proto.LABEL_REPEATED if field.many else _Proto.LABEL_OPTIONAL
    if field.is_message:
        type_name = f".stored.{field.kind.__name__}"
        message.field.add(
            name=field.name, number=field.number, label=label, type=_Proto.TYPE_MESSAGE, type_name=type_name
        )
        return
    kind = _Proto.TYPE_SINT64 if field.packing.signed else _TYPES[field.kind]
    added = message.field.add(name=field.name, number=field.number, label=label, type=kind)
    if field.may_miss and not field.many:
        # As protoc writes `optional` of proto3.
        added.proto3_optional = True
        added.oneof_index = len(message.oneof_decl)
        message.oneof_decl.add(name=f"_{field.name}")
    if field.packing.runs:
        message.field.add(name=f"{field.name}_runs", number=field.number + 1, label=label, type=kind)


pb = messages(Profile, Header)
pb_1 = messages(ProfileOfSchema1)
"""Of the first schema."""
