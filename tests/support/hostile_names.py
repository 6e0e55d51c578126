"""Names that steer a terminal, forge a line or a formula, and recordings that are full of them."""

from __future__ import annotations

import dataclasses
import gzip
import json
import re
from pathlib import Path
from typing import Any

import msgspec

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.readers.trace_names import TRACE_ENDINGS

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\x90q\x9c\u202eevil\u2066\r\nforged line\x7f\t\u2028\u200f\x08\x00"
"""OSC, CSI with 7 and with 8 bits, DCS, bidirectional controls, line ends of all kinds, DEL, tab, backspace, NUL."""
FORMULA = "=cmd|' /C calc'!A0"
STEERS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What no output of a command has. Its own line ends are none of it."""
_MATCHED = ("aten::", "cuda", "cu", "ProfilerStep#", "Optimizer.", "enumerate(", "autograd::")
"""What names begin with that rules recognise as a whole: with something behind it fewer pages would have rows."""


def hostile_profile(profile: Profile, every: bool = False) -> Profile:
    """The profile with `HOSTILE` behind its names; behind those that are recognised as a whole only with ``every``."""
    strings = [
        text
        if not text or (not every and text.startswith(_MATCHED))
        else FORMULA + text + HOSTILE
        if index % 7 == 0
        else text + HOSTILE
        for index, text in enumerate(profile.strings)
    ]
    return dataclasses.replace(
        profile,
        strings=strings,
        system=_hostile_texts(profile.system),
        facts=_hostile_texts(profile.facts),
        notes=[dataclasses.replace(note, text=note.text + HOSTILE) for note in profile.notes],
        source=dataclasses.replace(
            profile.source, worker=profile.source.worker + HOSTILE, trace_file=profile.source.trace_file + HOSTILE
        ),
    )


def hostile_trace(recorded: Path, folder: Path) -> Path:
    """A copy of a recorded trace with `HOSTILE` behind the names of its events, in a file that has it in its name."""
    with gzip.open(recorded) as file:
        document: Any = json.load(file)
    for event in document["traceEvents"]:
        if isinstance(event.get("name"), str) and event.get("ph") == "X" and not event["name"].startswith(_MATCHED):
            event["name"] += HOSTILE
    path = folder / f"trace{file_name()}{TRACE_ENDINGS[0]}"
    path.write_text(json.dumps(document))
    return path


def file_name() -> str:
    """`HOSTILE` as far as a file name may be."""
    return HOSTILE.replace("\x00", "").replace("/", "")


def _hostile_texts(struct: Any) -> Any:
    def changed(value: Any) -> Any:
        if isinstance(value, str):
            return value + HOSTILE
        if isinstance(value, msgspec.Struct):
            return _hostile_texts(value)
        if isinstance(value, list | tuple):
            return type(value)(map(changed, value))
        return value

    return msgspec.structs.replace(
        struct, **{name: changed(getattr(struct, name)) for name in struct.__struct_fields__}
    )
