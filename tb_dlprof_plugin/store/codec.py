"""Profile to bytes and back; the blob in the event file is a gzip'd protobuf message.

Its fields follow from the declarations of `Profile` and the structs in it, but for field 1, which comes first: the
version of the schema.
"""

from __future__ import annotations

import zlib
from typing import TypeVar

from tb_dlprof_plugin.model.profile import SCHEMA_VERSION, Profile
from tb_dlprof_plugin.model.visible import VisibleMessage
from tb_dlprof_plugin.store.allowance import GZIP, Allowance, TooLarge, largest_unpacked
from tb_dlprof_plugin.store.message import message_of, read_message, struct_of
from tb_dlprof_plugin.store.validation import check_lengths, check_profile
from tb_dlprof_plugin.store.wire import VARINT, Entries, varint

_Profile = TypeVar("_Profile", bound=Profile)
_VERSION = 1
"""The field's number."""
_GZIP_FORMAT = 16
"""What zlib's ``wbits`` are more than the logarithm of the window's bytes."""
_PACKINGS = ((6, 15), (1, 15), (6, 12), (0, 15))
"""Levels and windows, the smallest result first. What would take too much for its size is packed less: in steps that
are equal to the nanosecond a small window finds no other step."""


class ProfileError(VisibleMessage):
    """A stored profile that cannot be read; the message says why and what to do; the caller adds the run."""


def encode(profile: Profile) -> bytes:
    """The blob of a profile."""
    data = varint(_VERSION << 3 | VARINT) + varint(SCHEMA_VERSION) + message_of(profile)
    for level, window in _PACKINGS:
        packer = zlib.compressobj(level, wbits=_GZIP_FORMAT + window)
        # It holds no time: the same profile gives the same bytes.
        blob = packer.compress(data) + packer.flush()
        if _may_hold(blob, data):
            break
    return blob


def decode(blob: bytes) -> Profile:
    """The profile of a blob.

    Raises:
        ProfileError: the blob is damaged, or was written by a newer version.
    """
    allowance = Allowance(len(blob))
    try:
        data = allowance.unpack(blob, GZIP)
        version = _version_of(data)
        if version > SCHEMA_VERSION:
            raise ProfileError(
                f"the stored profile has format {version}, this version reads up to {SCHEMA_VERSION}; "
                "install a newer tb_dlprof_plugin"
            )
        if version < 1:
            raise ProfileError("the stored data is not a profile; record the run again")
        if version == 1:
            from tb_dlprof_plugin.store.schema_1 import ProfileOfSchema1, of_today

            profile = of_today(_struct_in(data, ProfileOfSchema1, allowance))
        else:
            profile = _struct_in(data, Profile, allowance)
        check_profile(profile)
    except TooLarge as error:
        raise ProfileError(f"the stored profile {error}, which none does; check where the file comes from") from None
    except (ValueError, IndexError, OverflowError) as error:
        raise ProfileError(f"the stored profile is damaged ({error}); record the run again") from None
    return profile


def _struct_in(data: bytes, kind: type[_Profile], allowance: Allowance) -> _Profile:
    values = read_message(data, kind, allowance)
    check_lengths(kind, values, allowance)
    return struct_of(kind, values, allowance)


def _version_of(data: bytes) -> int:
    """0 of what is no profile.

    Raises:
        ValueError: the bytes are no message.
    """
    for number, _, value, _ in Entries(data, Allowance(0)).fields(0, len(data)):
        return value if number == _VERSION else 0
    return 0


def _may_hold(blob: bytes, data: bytes) -> bool:
    """Whether a blob of this size may hold the message."""
    allowance = Allowance(len(blob))
    try:
        allowance.take(len(data))
        check_lengths(Profile, read_message(data, Profile, allowance), allowance)
    except TooLarge:
        return False
    return len(data) <= largest_unpacked(len(blob))
