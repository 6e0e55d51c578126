"""Decodes lists of events: a field that is not what it should be is as if absent, whatever field it is.

The types of `tb_dlprof_plugin.readers.kineto.records` decode a run at once and refuse the whole run for one odd field.
The refusal names the field. From then on that field, and no other, is decoded as text in this file and converted alone,
so that a file with odd fields everywhere costs a few decodes more, and not a repair of each event.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Union

import msgspec

from tb_dlprof_plugin.model.decoders import json_decoder
from tb_dlprof_plugin.readers.errors import UNDECODABLE
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage
from tb_dlprof_plugin.readers.kineto.records import NOTHING, PHASES, SKIPPED, event_types

_WHERE = re.compile(r"at `\$(?:\[\d+\])?\.?(?P<field>.*)`\Z", re.DOTALL)
_ARGS = "args"
_OF_ARGS = _ARGS + "."
_PHASE = "ph"
_NO_TIME = {"ts": float("nan"), "dur": float("nan")}
"""A time that is no number is none at all: such an event is left out and counted with the others of no usable time."""

_phase: Any = msgspec.json.Decoder(msgspec.defstruct("Phase", [(_PHASE, str)], gc=False), strict=False)


class EventDecoder:
    """Decodes the events of one file, and counts in ``damage`` what was odd.

    Args:
        exact: whether a float64 is too coarse for the file's times.
        distributed: whether they are of a distributed training.
    """

    def __init__(self, exact: bool, distributed: bool, damage: Damage) -> None:
        self._types = event_types(exact, distributed)
        self.complete: set[Any] = set()
        self.instant: set[Any] = set()
        self._damage = damage
        self._loose: set[str] = set()
        self._prepare()

    def decode(self, text: bytes) -> list[Any] | None:
        """The events of a JSON list: of types in ``complete``, ``instant`` or others; None for no sound JSON."""
        dropped = {"events_lost": 0, "stray_text": 0}
        filtered = False
        while True:
            try:
                events = self._typed(text)
                odd = self._settle(events) if self._loose else 0
                break
            except msgspec.ValidationError as error:
                if self._loosen(str(error)):
                    continue
                if filtered:
                    return None
            except UNDECODABLE:
                return None
            # Not a field: what is no event, or of no kind that there is.
            try:
                text, dropped = _events_alone(text)
            except UNDECODABLE:
                return None
            filtered = True
        for code, count in (*dropped.items(), ("odd_fields", odd)):
            self._damage.add(code, count)
        return events

    def _typed(self, text: bytes) -> list[Any]:
        try:
            return self._decoders[0].decode(text)  # type: ignore[no-any-return]
        except msgspec.ValidationError:
            return self._decoders[1].decode(text)  # type: ignore[no-any-return]  # numbers in quotes

    def _prepare(self) -> None:
        """Takes the types with what is loose."""
        complete, instant, self._decoders = _kinds_of(*self._types, frozenset(self._loose))
        self.complete.add(complete.type)
        self.instant.add(instant.type)
        self._by_type = {complete.type: complete, instant.type: instant}

    def _loosen(self, message: str) -> bool:
        """Makes the field loose that a message names; False where it names none, or one that is loose."""
        where = _WHERE.search(message)
        if where is None or where["field"] in self._loose or where["field"] not in _names(*self._types):
            return False
        self._loose.add(where["field"])
        self._prepare()
        return True

    def _settle(self, events: list[Any]) -> int:
        """Converts what was decoded as text; returns how many events had odd fields."""
        kinds = self._by_type
        return sum(kinds[type(event)].settle(event) for event in events if type(event) in kinds)


@functools.lru_cache(maxsize=256)
def _kinds_of(complete: Any, instant: Any, loose: frozenset[str]) -> tuple[_Loosened, _Loosened, list[Any]]:
    """Complete events and moments with these fields as text, and the decoders of lists of them, strict and not."""
    kinds = _Loosened(complete, loose), _Loosened(instant, loose)
    event: Any = Union[(*(kind.type for kind in kinds), *SKIPPED)]
    return *kinds, [json_decoder(list[event], strict) for strict in (True, False)]


class _Loosened:
    """A type of events with some fields as text, and how they are converted."""

    def __init__(self, kind: Any, loose: frozenset[str]) -> None:
        own = _fields(kind)
        args = own[_ARGS].type
        inner = {_OF_ARGS + name: field for name, field in _fields(args).items()}
        self._inner = [inner[name] for name in sorted(loose & inner.keys())]
        self._args = _loosened(args, self._inner, frozen=True)
        self._args_decoder = json_decoder(self._args, strict=False)
        self._own = [own[name] for name in sorted(loose & own.keys()) if name != _ARGS]
        self._has_loose_args = _ARGS in loose
        self._no_args = own[_ARGS].default
        self.type = kind
        if loose:
            retyped = [(_ARGS, msgspec.Raw if self._has_loose_args else self._args, self._no_args)]
            self.type = _loosened(kind, self._own, retyped, tag_field=_PHASE, tag="X" if "dur" in own else "i")

    def settle(self, event: Any) -> bool:
        """Converts the loose fields of an event; returns whether one was odd.

        Raises:
            msgspec.ValidationError: a detail is odd that is not loose yet.
        """
        odd = False
        if self._has_loose_args and event.args is not self._no_args:
            raw = bytes(event.args)
            event.args = self._no_args
            if raw.startswith(b"{"):
                event.args = self._decoded_args(raw)
            else:
                odd = raw != b"null"
        for field in self._own:
            odd |= _convert(event, field)
        if self._inner and event.args is not self._no_args:
            for field in self._inner:
                odd |= _convert(event.args, field)
        return odd

    def _decoded_args(self, raw: bytes) -> Any:
        try:
            return self._args_decoder.decode(raw)
        except msgspec.ValidationError as error:
            raise msgspec.ValidationError(str(error).replace("at `$.", f"at `$.{_OF_ARGS}")) from None


def _convert(holder: Any, field: msgspec.structs.FieldInfo) -> bool:
    """Gives a field that is text its value, the default where it has none; returns whether it is odd."""
    raw = getattr(holder, field.name)
    if type(raw) is not msgspec.Raw:
        return False
    value, odd = _NO_TIME.get(field.encode_name, field.default), False
    if raw is NOTHING or bytes(raw) == b"":
        value = field.default
    elif bytes(raw) != b"null":
        try:
            value = _decoder(field.type).decode(raw)
        except UNDECODABLE:
            odd = field.encode_name not in _NO_TIME
    msgspec.structs.force_setattr(holder, field.name, value)
    return odd


def _loosened(
    kind: Any,
    fields: list[msgspec.structs.FieldInfo],
    retyped: list[tuple[str, Any, Any]] | None = None,
    **options: Any,
) -> Any:
    """A type with these fields as text; itself where there are none."""
    changed: list[Any] = [*(retyped or [])]
    for field in fields:
        changed.append((field.name, msgspec.Raw, msgspec.field(default=NOTHING, name=field.encode_name)))
    return msgspec.defstruct("Loose" + kind.__name__, changed, bases=(kind,), gc=False, **options) if changed else kind


@functools.cache
def _fields(kind: Any) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.encode_name: field for field in msgspec.structs.fields(kind)}


@functools.cache
def _names(*kinds: Any) -> frozenset[str]:
    """Of all fields, those of the details after "args."."""
    found: set[str] = set()
    for kind in kinds:
        own = _fields(kind)
        found |= own.keys() | {_OF_ARGS + name for name in _fields(own[_ARGS].type)}
    return frozenset(found)


@functools.lru_cache(maxsize=64)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return json_decoder(kind, strict=False)


def _events_alone(text: bytes) -> tuple[bytes, dict[str, int]]:
    """A list without what is no event of a known phase, and how much that was by what it is.

    Raises:
        msgspec.DecodeError: the text is no sound JSON.
    """
    raws = msgspec.json.decode(text, type=list[msgspec.Raw])
    objects = [raw for raw in raws if bytes(raw).startswith(b"{")]
    kept = [raw for raw in objects if _has_phase(raw)]
    lost = {"events_lost": len(objects) - len(kept), "stray_text": len(raws) - len(objects)}
    return b"[" + b",".join(map(bytes, kept)) + b"]", lost


def _has_phase(event: msgspec.Raw) -> bool:
    try:
        return _phase.decode(event).ph in PHASES
    except UNDECODABLE:
        return False
