"""Event files in which bytes, records, messages or numbers are wrong, and what reading them must be like."""

from __future__ import annotations

import contextlib
import gzip
import random
import struct
import zlib
from pathlib import Path

import google_crc32c
import msgspec
from google.protobuf.message import DecodeError
from support.messages import pb
from support.stored_profiles import mutated
from tensorboard.compat.proto.event_pb2 import Event

from tb_dlprof_plugin.fleet.facts_codec import decode_facts
from tb_dlprof_plugin.store.codec import ProfileError, decode
from tb_dlprof_plugin.store.event_file import read_blobs

_LENGTHS = (0, 1, 11, 2**16, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)


def mutated_file(sound: bytes, source: random.Random) -> bytes:
    """A copy of an event file with faults: half of them behind checksums that are right again."""
    if source.random() < 0.25:
        return bytes_changed(sound, source, source.choice((1, 1, 3, 20)))
    records = _records(sound)
    how = source.random()
    if how < 0.15:
        records[source.randrange(len(records))] = b""
    elif how < 0.25:
        source.shuffle(records)
        records *= source.choice((1, 2))
    elif how < 0.45:
        at = source.randrange(len(records))
        records[at] = bytes_changed(records[at], source, source.choice((1, 2, 5)))
    else:
        records[-1] = _value_changed(records[-1], source)
    data = b"".join(map(framed, records))
    if source.random() < 0.1:
        at = source.choice((0, len(framed(records[0]))))
        data = data[:at] + _length(source.choice(_LENGTHS)) + data[at + 12 :]
    return data[: source.randrange(len(data) + 1)] if source.random() < 0.1 else data


def read_everything(path: Path) -> bool:
    """Reads all profiles and facts of a file; False where it is refused with one sentence.

    Raises:
        AssertionError: the refusal is no sentence.
        Exception: any other is a fault.
    """
    try:
        for stored in read_blobs(path, "run"):
            decode(stored.blob)
            if stored.facts is not None:
                with contextlib.suppress(ProfileError):
                    decode_facts(stored.facts)
    except ProfileError as error:
        if len(str(error).splitlines()) != 1:
            raise AssertionError(f"the refusal is no sentence: {error}") from error
        return False
    return True


_MARK, _BLOB = b"\x00record\x00", b"\x00blob\x00"


def unpacked(file: bytes) -> bytes:
    """The records of a file, profiles in them out of their gzip: what a change of one byte can mean."""
    return _MARK.join(map(_unpacked_record, _records(file)))


def packed_again(data: bytes) -> bytes:
    """The file of which `unpacked` made this, with lengths and checksums that are right."""
    return b"".join(framed(_packed_record(record)) for record in data.split(_MARK))


def _unpacked_record(record: bytes) -> bytes:
    event = Event.FromString(record)
    blobs = [blob for value in event.summary.value for blob in value.tensor.string_val]
    for value in event.summary.value:
        del value.tensor.string_val[:]
    return _BLOB.join([event.SerializeToString(), *map(_content, blobs)])


def _packed_record(record: bytes) -> bytes:
    """The blobs go to the values in turn; an event that is none stays as it is."""
    head, *contents = record.split(_BLOB)
    try:
        event = Event.FromString(head)
    except DecodeError:
        return record
    for number, content in enumerate(contents):
        if event.summary.value:
            value = event.summary.value[number % len(event.summary.value)]
            packed = gzip.compress(content[1:], 1, mtime=0) if content[:1] == b"z" else content[1:]
            value.tensor.string_val.append(packed)
    return event.SerializeToString()


def _content(blob: bytes) -> bytes:
    """Of a gzip what is in it, behind "z"; of others what they are, behind "-"."""
    return b"z" + gzip.decompress(blob) if blob.startswith(b"\x1f\x8b") else b"-" + blob


def _value_changed(record: bytes, source: random.Random) -> bytes:
    """The event with another profile or rank's facts, or with names and numbers around them changed."""
    try:
        event = Event.FromString(record)
    except DecodeError:
        return record
    if not event.summary.value:
        return record
    value = source.choice(event.summary.value)
    how = source.random()
    if how < 0.1:
        event.step = source.choice((-1, 2**62, -(2**63), 7))
    elif how < 0.2:
        value.tag = source.choice(
            ("", "tb_dlprof/v1//rank0", "tb_dlprof/v1/s/rank-1", f"tb_dlprof/v1/s/rank{'9' * 40}")
        )
    elif how < 0.3 or not value.tensor.string_val:
        value.tensor.string_val[:] = [] if source.random() < 0.5 else [*value.tensor.string_val, b"", b"\x1f\x8b"]
    else:
        value.tensor.string_val[0] = _blob_changed(value.tensor.string_val[0], source)
    return event.SerializeToString()


def _blob_changed(blob: bytes, source: random.Random) -> bytes:
    if source.random() < 0.2:
        return bytes_changed(blob, source, source.choice((1, 1, 4)))
    if not blob.startswith(b"\x1f\x8b"):
        return _facts_changed(blob, source)
    content = gzip.decompress(blob)
    if source.random() < 0.5:
        return gzip.compress(bytes_changed(content, source, source.choice((1, 2, 8))), 1, mtime=0)
    return gzip.compress(mutated(pb.Profile.FromString(content), source).SerializeToString(), 1, mtime=0)


def _facts_changed(blob: bytes, source: random.Random) -> bytes:
    """The facts of a rank with other bytes in what all steps share, or in the calls of one step."""
    number, head, steps = msgspec.msgpack.decode(blob)
    at = source.randrange(-1, len(steps))
    content = zlib.decompress(steps[at] if at >= 0 else head)
    changed = zlib.compress(bytes_changed(content, source, source.choice((1, 1, 2, 8))), 1)
    if at >= 0:
        steps[at] = changed
    else:
        head = changed
    return msgspec.msgpack.encode([number, head, steps])


def bytes_changed(data: bytes, source: random.Random, times: int) -> bytes:
    """A copy in which bytes at some places are others, missing or new."""
    changed = bytearray(data)
    for _ in range(times):
        at = source.randrange(len(changed) + 1)
        changed[at : at + source.choice((0, 1, 1, 1, 4, 200))] = source.randbytes(source.choice((0, 1, 1, 1, 9)))
    return bytes(changed)


def _records(data: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        found.append(data[at + 12 : at + 12 + length])
        at += 16 + length
    return found


def _length(length: int) -> bytes:
    data = struct.pack("<Q", length)
    return data + _checksum(data)


def framed(record: bytes) -> bytes:
    """A record with its length and checksums."""
    return _length(len(record)) + record + _checksum(record)


def _checksum(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)
