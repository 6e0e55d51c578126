"""Blobs of every kind that is stored, with what they unpack to changed: decoded, and a few of them asked about."""

from __future__ import annotations

import dataclasses
import gzip
import random
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from hostile.event_files import bytes_changed
from hostile.job_kinds import recorded_jobs
from hostile.outcome import LONGEST_S, Outcome, Try, small_profiles, timed
from support import all_answers
from support.messages import pb
from support.stored_profiles import mutated, trial_result

from tb_dlprof_plugin.fleet.answers.job_of import job_of
from tb_dlprof_plugin.fleet.facts_codec import decode_ranks, encode_facts
from tb_dlprof_plugin.metrics.run_figures import run_figures
from tb_dlprof_plugin.model.trial_result import decode_trial, encode_trial
from tb_dlprof_plugin.pages.distributed import distributed_page
from tb_dlprof_plugin.pages.tried import tried_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError, decode, encode
from tb_dlprof_plugin.store.header import header_of, parse_header
from tb_dlprof_plugin.store.reclassify import reclassified

_ASKED = 0.02
"""Of the blobs that are let in, of about so many something is asked: tens of ms each."""
_Blob = Callable[[random.Random], bool]
"""Changes a blob of one kind and reads it; whether it was let in."""


def blobs(folder: Path) -> Try:
    """Reads profiles, facts, trials and headers with other bytes, numbers, lists and texts."""
    profiles = small_profiles()
    kinds: list[_Blob] = [_profiles(profiles), _facts(), _trials(profiles[0]), _headers(profiles)]

    def one(source: random.Random) -> Outcome:
        (kind,) = source.choices(kinds, (40, 45, 10, 5))
        return timed(lambda: kind(source), LONGEST_S)

    return one


def _profiles(profiles: list[Any]) -> _Blob:
    contents = sorted((gzip.decompress(encode(profile)) for profile in profiles), key=len)[:3]

    def read(source: random.Random) -> bool:
        content = source.choice(contents)
        if source.random() < 0.5:
            content = mutated(pb.Profile.FromString(content), source).SerializeToString()
        else:
            content = bytes_changed(content, source, source.choice((1, 1, 2, 8)))
        try:
            profile = decode(gzip.compress(content, source.choice((0, 1)), mtime=0))
        except ProfileError as error:
            return _refused(error)
        if source.random() < _ASKED:
            view = ProfileView(reclassified(profile))
            msgspec.json.encode(run_figures(view, view.selection()))
        return True

    return read


def _facts() -> _Blob:
    sound = [facts for *_, facts in recorded_jobs()]
    stored = [[_parts(encode_facts(one)) for one in job] for job in sound]

    def read(source: random.Random) -> bool:
        job = source.randrange(len(sound))
        rank = source.randrange(len(sound[job]))
        (found,) = decode_ranks([_changed_facts(*stored[job][rank], source)])
        if isinstance(found, ProfileError):
            return _refused(found)
        if source.random() < _ASKED:
            others = [one for number, one in enumerate(sound[job]) if number != rank]
            page = job_of([dataclasses.replace(found, rank=rank), *others])
            msgspec.json.encode(distributed_page(page, all_answers.REF))
        return True

    return read


def _parts(facts: bytes) -> tuple[int, list[bytes]]:
    """The format, and what each part unpacks to: that which all steps share, and each step."""
    number, head, steps = msgspec.msgpack.decode(facts)
    return number, [zlib.decompress(part) for part in (head, *steps)]


def _changed_facts(number: int, parts: list[bytes], source: random.Random) -> bytes:
    parts = list(parts)
    for _ in range(source.choice((1, 1, 2))):
        at = source.randrange(len(parts)) if source.random() < 0.6 else 0
        if source.random() < 0.4:
            parts[at] = bytes_changed(parts[at], source, source.choice((1, 1, 2, 8)))
            continue
        try:
            content = msgspec.msgpack.decode(parts[at])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        for _ in range(source.choice((1, 1, 3))):
            content = _changed_value(content, source)
        try:
            parts[at] = msgspec.msgpack.encode(content)
        except (OverflowError, UnicodeEncodeError, TypeError):
            continue
    head, *steps = (zlib.compress(part, source.choice((0, 1))) for part in parts)
    if source.random() < 0.05:
        steps = source.choice(([], steps[:-1], [*steps, *steps], [steps[0]] * 300 if steps else []))
    if source.random() < 0.05:
        return head
    return msgspec.msgpack.encode([source.choice((number, number, number, 1, 9)), head, steps])


_VALUES: tuple[Any, ...] = (
    0, 1, -1, 3, 255, 2**16, 2**31, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64 - 1, "", "x", "é" * 50, b"", b"\xff" * 16,
    b"\0" * 999, None, True, 0.5, float("nan"), float("inf"), -1e300, [], {}, [0] * 50, [""] * 50, {"number": [1, b""]},
)  # fmt: skip


def _changed_value(content: Any, source: random.Random) -> Any:
    """The content with one value in it changed, missing or repeated."""
    if isinstance(content, list) and content and source.random() < 0.9:
        at = source.randrange(len(content))
        how = source.random()
        if how < 0.1:
            return [*content[:at], *content[at + 1 :]]
        if how < 0.2:
            return [*content[:at], *[content[at]] * source.choice((2, 3, 200)), *content[at + 1 :]]
        return [*content[:at], _changed_value(content[at], source), *content[at + 1 :]]
    if isinstance(content, dict) and content and source.random() < 0.95:
        key = source.choice(list(content))
        if source.random() < 0.1:
            return {name: value for name, value in content.items() if name != key}
        if source.random() < 0.1:
            return content | {key: content[source.choice(list(content))]}
        return content | {key: _changed_value(content[key], source)}
    if isinstance(content, bytes) and content and source.random() < 0.8:
        return bytes_changed(content, source, source.choice((1, 2, 8)))
    alike = [one for one in _VALUES if type(one) is type(content)]
    return source.choice(alike if alike and source.random() < 0.7 else _VALUES)


def _changed_json(content: Any, source: random.Random) -> Any:
    """As `_changed_value`, without what no JSON holds."""
    changed = content
    for _ in range(source.choice((1, 1, 3))):
        changed = _changed_value(changed, source)
    try:
        msgspec.json.encode(changed)
    except (TypeError, UnicodeEncodeError):
        return content
    return changed


def _trials(profile: Any) -> _Blob:
    sound = msgspec.json.decode(encode_trial(trial_result()))

    def read(source: random.Random) -> bool:
        content = msgspec.json.encode(_changed_json(sound, source))
        if source.random() < 0.3:
            content = bytes_changed(content, source, source.choice((1, 1, 2)))
        trial = decode_trial(content)
        if trial is not None and source.random() < _ASKED:
            stored = decode(encode(dataclasses.replace(profile, trial=trial)))
            view = ProfileView(stored)
            msgspec.json.encode(tried_page(view, all_answers.REF, view.selection()))
        return trial is not None

    return read


def _headers(profiles: list[Any]) -> _Blob:
    contents = [header_of(profile).encode() for profile in profiles]

    def read(source: random.Random) -> bool:
        return parse_header(bytes_changed(source.choice(contents), source, source.choice((1, 2)))) is not None

    return read


def _refused(error: ProfileError) -> bool:
    if len(str(error).splitlines()) != 1:
        raise AssertionError(f"the refusal is no sentence: {error}") from error
    return False
