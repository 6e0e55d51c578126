"""Event files: one immutable file per profile, written whole and moved into place, and read back without TensorBoard.

The format is TensorFlow's record format: length (uint64), masked CRC of the length, data, masked CRC of the data; each
record an ``Event`` message (`store.event_message`). google-crc32c computes the checksums, because those of TensorBoard
run at about 12 MB/s.
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

from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.model.whole_file import whole_file
from tb_dlprof_plugin.store.allowance import TooLarge
from tb_dlprof_plugin.store.choice import StoredBlob
from tb_dlprof_plugin.store.codec import ProfileError, encode
from tb_dlprof_plugin.store.event_message import Value, event_of_profile, event_of_version, step_and_values
from tb_dlprof_plugin.store.header import header_of
from tb_dlprof_plugin.store.run_ref import RunRef
from tb_dlprof_plugin.store.tags import PLUGIN_NAME, Tag

_MASK_DELTA = 0xA282EAD8
_SUFFIX = ".tb_dlprof"


@dataclass(frozen=True, slots=True)
class EventBlob(StoredBlob):
    """A profile that is stored in an event file."""

    path: Path
    blob: bytes
    facts: bytes | None = None

    def read(self) -> bytes:
        """The bytes, which are in memory."""
        return self.blob

    def read_facts(self) -> bytes | None:
        """The bytes, which are in memory."""
        return self.facts


@dataclass(frozen=True, slots=True)
class PlacedProfile:
    """Where an event file has a profile and its facts: slices of the file's bytes."""

    ref: RunRef
    key: tuple[Path, int, str]
    header: bytes
    blob: slice
    facts: slice | None


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
    facts: bytes | None = None,
    blob: bytes | None = None,
) -> bytes:
    """An event file with one profile; ``at_ns`` as in the name, the others as in `write_profile`."""
    at = at_ns / 1e9
    return b"".join(map(_record, (event_of_version(at), _event(profile, at, facts, blob))))


def write_profile(
    directory: str | os.PathLike[str],
    profile: Profile,
    facts: bytes | None = None,
    blob: bytes | None = None,
) -> Path:
    """Writes one event file into ``directory`` (made if missing) and returns its path.

    ``facts`` are stored with the profile (`StoredBlob.read_facts`). ``blob`` is the encoded profile, where the caller
    has it.

    The name sorts after older event files of the directory, to the nanosecond: TensorBoard's Python loader polls only
    the last, and its Rust loader drops the cycles before one that a later name holds with a lower number.

    Raises:
        OSError: the directory cannot be written. Nothing is left behind under a name that TensorBoard reads.
    """
    folder = Path(directory)
    folder.mkdir(parents=True, exist_ok=True)
    now_ns = time.time_ns()
    name = own_event_file_name(now_ns)
    data = event_file_content(profile, now_ns, facts, blob)
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
    data = _content(source)
    for one in _placed(source, data, run):
        yield EventBlob(one.ref, one.key, source, data[one.blob], None if one.facts is None else data[one.facts])


def placed_in(path: Path, run: str) -> list[PlacedProfile]:
    """Where an event file of a run has its profiles, in order.

    Raises:
        ProfileError: the file is cut short or damaged.
    """
    return list(_placed(path, _content(path), run))


def _placed(source: Path, data: bytes, run: str) -> Iterator[PlacedProfile]:
    for number, (begin, end) in enumerate(_records(source, data)):
        try:
            step, found = step_and_values(data, begin, end)
        except TooLarge as error:
            raise ProfileError(
                f"{source} holds a record that {error}, which none does; check where the file comes from."
            ) from None
        except ValueError:
            raise ProfileError(f"{source} holds a record that is not an event; record the run again.") from None
        blobs = {value.tag: value.blob for value in found}
        for value in found:
            tag = Tag.parse(value.tag)
            if value.plugin == PLUGIN_NAME and tag is not None and value.blob is not None:
                yield PlacedProfile(
                    RunRef(run, tag.session, tag.rank, step),
                    (source, number, value.tag),
                    value.content,
                    value.blob,
                    blobs.get(tag.of_facts),
                )


def event_files(logdir: Path) -> list[Path]:
    """Our event files under a directory, by path."""
    return sorted(logdir.rglob(f"*tfevents*{_SUFFIX}"))


def _event(
    profile: Profile,
    wall_time: float,
    facts: bytes | None = None,
    blob: bytes | None = None,
) -> bytes:
    tag = Tag(profile.source.session, profile.source.rank)
    values = [Value(str(tag), encode(profile) if blob is None else blob, header_of(profile).encode())]
    if facts is not None:
        values.append(Value(tag.of_facts, facts))
    return event_of_profile(wall_time, profile.source.cycle, PLUGIN_NAME, values)


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join((length, _masked_crc(length), data, _masked_crc(data)))


def _masked_crc(data: bytes) -> bytes:
    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF)


def _content(source: Path) -> bytes:
    try:
        return source.read_bytes()
    except OSError as error:
        raise ProfileError(f"{source} cannot be read ({error.strerror}); check the path.") from None


def _records(source: Path, data: bytes) -> Iterator[tuple[int, int]]:
    """Where each record's message begins and ends."""
    offset = 0
    while offset < len(data):
        header = data[offset : offset + 12]
        if len(header) < 12:
            raise ProfileError(f"{source} is cut short at byte {offset}; record the run again.")
        (length,) = struct.unpack("<Q", header[:8])
        begin, end = offset + 12, offset + 12 + length
        check = data[end : end + 4]
        if offset == 0 and header[8:] != _masked_crc(header[:8]):
            raise ProfileError(f"{source} is not an event file, or its start is damaged; give a run's directory.")
        if header[8:] != _masked_crc(header[:8]) or len(check) < 4 or check != _masked_crc(data[begin:end]):
            raise ProfileError(f"{source} is damaged or cut short at byte {offset}; record the run again.")
        yield begin, end
        offset = end + 4
