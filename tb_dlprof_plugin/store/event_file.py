"""Event files: one immutable file per profile, written whole and moved into place, and read back without TensorBoard.

The format is TensorFlow's record format: length (uint64), masked CRC of the length, data, masked CRC of the data; each
record an ``Event`` message. google-crc32c computes the checksums, because TensorBoard's own runs at about 12 MB/s.
"""

from __future__ import annotations

import os
import platform
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import google_crc32c
from google.protobuf.message import DecodeError
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.store.allowance import Allowance, TooLarge
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError, encode
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.store.tags import PLUGIN_NAME, Tag
from tb_dlprof_plugin.store.wire import count_entries

_MASK_DELTA = 0xA282EAD8
_SUFFIX = ".tb_dlprof"


@dataclass(frozen=True, slots=True)
class EventBlob(StoredBlob):
    """A profile that is stored in an event file."""

    path: Path
    blob: bytes
    summary: bytes | None
    facts: bytes | None = None

    def read(self) -> bytes:
        """The bytes, which are in memory."""
        return self.blob

    def read_summary(self) -> bytes | None:
        """The bytes, which are in memory."""
        return self.summary

    def read_facts(self) -> bytes | None:
        """The bytes, which are in memory."""
        return self.facts


def event_file_name(at_ns: int, maker: str) -> str:
    """The name of an event file of ours: files sort by their time (unix ns)."""
    seconds, fraction = divmod(at_ns, 1_000_000_000)
    return f"events.out.tfevents.{seconds:010d}.{fraction:09d}.{maker}{_SUFFIX}"


def own_event_file_name(at_ns: int) -> str:
    """The name of an event file that this process makes at that time; no other has it."""
    return event_file_name(at_ns, f"{platform.node()}.{os.getpid()}.{os.urandom(4).hex()}")


def event_file_content(
    profile: Profile,
    at_ns: int,
    summary: bytes | None = None,
    facts: bytes | None = None,
    blob: bytes | None = None,
) -> bytes:
    """An event file with one profile; ``at_ns`` as in the name, the others as in `write_profile`."""
    at = at_ns / 1e9
    records = [Event(wall_time=at, file_version="brain.Event:2"), _event(profile, at, summary, facts, blob)]
    return b"".join(_record(event.SerializeToString()) for event in records)


def write_profile(
    directory: str | os.PathLike[str],
    profile: Profile,
    summary: bytes | None = None,
    facts: bytes | None = None,
    blob: bytes | None = None,
) -> Path:
    """Writes one event file into ``directory`` (made if missing) and returns its path.

    ``summary`` and ``facts`` are stored with the profile (`StoredBlob.read_summary`, `StoredBlob.read_facts`).
    ``blob`` is the encoded profile, where the caller has it.

    The name sorts after older event files of the directory, to the nanosecond: TensorBoard's Python loader polls only
    the last, and its Rust loader drops the cycles before one that a later name holds with a lower number.

    Raises:
        OSError: the directory cannot be written. Nothing is left behind under a name that TensorBoard reads.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    now_ns = time.time_ns()
    name = own_event_file_name(now_ns)
    data = event_file_content(profile, now_ns, summary, facts, blob)
    with whole_file(folder / name) as file:
        file.write(data)
    return folder / name


def read_blobs(path: str | os.PathLike[str], run: str) -> Iterator[EventBlob]:
    """The profiles in an event file of a run, in order, not decoded: the newest of many is found by their names.

    Nothing in a file of another writer.

    Raises:
        ProfileError: the file is cut short or damaged.
    """
    source = Path(path)
    for number, data in enumerate(_records(source)):
        try:
            # However large its blobs are, a record has few fields.
            count_entries(data, Event.DESCRIPTOR, Allowance(0))
            event = Event.FromString(data)
        except TooLarge as error:
            raise ProfileError(
                f"{source} holds a record that {error}, which none does; check where the file comes from."
            ) from None
        except (DecodeError, ValueError):
            raise ProfileError(f"{source} holds a record that is not an event; record the run again.") from None
        values = {value.tag: value for value in event.summary.value}
        for value in event.summary.value:
            tag = Tag.parse(value.tag)
            if value.metadata.plugin_data.plugin_name == PLUGIN_NAME and tag is not None:
                summary, facts = (
                    next(iter(beside.tensor.string_val), None) if beside is not None else None
                    for beside in map(values.get, (tag.of_summaries, tag.of_facts))
                )
                for blob in value.tensor.string_val[:1]:
                    ref = RunRef(run, tag.session, tag.rank, event.step)
                    yield EventBlob(ref, (source, number, value.tag), source, blob, summary, facts)


def event_files(logdir: Path) -> list[Path]:
    """Our event files under a directory, by path."""
    return sorted(logdir.rglob(f"*tfevents*{_SUFFIX}"))


def _event(
    profile: Profile,
    wall_time: float,
    summary: bytes | None = None,
    facts: bytes | None = None,
    blob: bytes | None = None,
) -> Event:
    tag = Tag(profile.source.session, profile.source.rank)
    values = [_value(str(tag), encode(profile) if blob is None else blob, header_of(profile).encode())]
    if summary is not None:
        values.append(_value(tag.of_summaries, summary))
    if facts is not None:
        values.append(_value(tag.of_facts, facts))
    return Event(wall_time=wall_time, step=profile.source.cycle, summary=Summary(value=values))


def _value(tag: str, blob: bytes, content: bytes = b"") -> Summary.Value:
    metadata = SummaryMetadata(
        plugin_data=SummaryMetadata.PluginData(plugin_name=PLUGIN_NAME, content=content),
        data_class=DATA_CLASS_BLOB_SEQUENCE,
        display_name=tag,
    )
    # Rank 1: the Python loader answers 500 for a scalar blob.
    tensor = TensorProto(
        dtype=DT_STRING, tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]), string_val=[blob]
    )
    return Summary.Value(tag=tag, metadata=metadata, tensor=tensor)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join((length, _masked_crc(length), data, _masked_crc(data)))


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF)


def _records(source: Path) -> Iterator[bytes]:
    try:
        data = source.read_bytes()
    except OSError as error:
        raise ProfileError(f"{source} cannot be read ({error.strerror}); check the path.") from None
    offset = 0
    while offset < len(data):
        header = data[offset : offset + 12]
        if len(header) < 12:
            raise ProfileError(f"{source} is cut short at byte {offset}; record the run again.")
        (length,) = struct.unpack("<Q", header[:8])
        body = data[offset + 12 : offset + 12 + length]
        check = data[offset + 12 + length : offset + 16 + length]
        if offset == 0 and header[8:] != _masked_crc(header[:8]):
            raise ProfileError(f"{source} is not an event file, or its start is damaged; give a run's directory.")
        if header[8:] != _masked_crc(header[:8]) or len(check) < 4 or check != _masked_crc(body):
            raise ProfileError(f"{source} is damaged or cut short at byte {offset}; record the run again.")
        yield body
        offset += 16 + length
