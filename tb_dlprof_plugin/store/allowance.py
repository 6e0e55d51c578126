"""The door for the bytes of everything that is stored: what a blob may unpack to, and how much may be made of it.

A blob comes from a file that anybody may have written. Every decoder asks here before it allocates: what a blob may
take is in proportion to its size, and what the blobs of one job take together has a limit, too.
"""

from __future__ import annotations

import zlib

GZIP, ZLIB = 31, zlib.MAX_WBITS
"""How bytes are packed: ``wbits`` of zlib."""
NUMBER_BYTES = 8
ENTRY_BYTES = 160
"""Of a Python object with its place in a list: a row of a list in a message, a short text."""
LARGEST_EXPANSION = 8
"""Recorded profiles and facts shrink by 1.1 to 2.8 times, facts of times that are drawn at random by 5.4."""
BYTES_PER_BYTE = 48
"""Recorded profiles take up to 29 bytes of memory for each of the file, facts 36, by the sizes above."""
_UNPACKED_ALWAYS, _TAKEN_ALWAYS = 4 << 20, 8 << 20
_ROWS_ALWAYS = 5_000
"""Bytes that a blob of any size may unpack to, and take, and rows that it may have."""
_TAKEN_BY_JOB = 5 << 20
"""Bytes that all blobs of a job may take beyond what their sizes allow: replaying its calls takes ten times that."""
MOST_BYTES = 2 << 30
"""A trace of 2 GB has some 8 million events, with 0.4 GB in columns; so have 512 ranks whose calls are compared."""


class TooLarge(ValueError):
    """Bytes that ask for more than any of their size; the message says for what, to follow the name of the blob."""


class Allowance:
    """What a blob may still take. It may be of a job, which bounds what the blobs of its ranks take together.

    Args:
        packed: the size of the blob.
        of_job: of the job that the blob is a part of.
    """

    def __init__(self, packed: int, of_job: JobAllowance | None = None) -> None:
        self._packed, self._of_job = 0, of_job
        self._taken = self._shared = 0
        self.grow(packed)

    def grow(self, packed: int) -> None:
        """Counts bytes of another blob of the same rank. What was made so far is dropped."""
        self.reset()
        self._packed += packed
        self.reset()

    def reset(self) -> None:
        """Begins again: what was made of the blob is dropped."""
        self.keep(0)
        self._unpacked_left = min(MOST_BYTES, largest_unpacked(self._packed))

    def unpack(self, data: bytes, packing: int) -> bytes:
        """The bytes that were packed.

        Raises:
            TooLarge: there are more of them than the blob may have.
            ValueError: they are damaged or cut short.
        """
        unpacker = zlib.decompressobj(wbits=packing)
        try:
            # One more than is left: a length of 0 would be any.
            content = unpacker.decompress(data, self._unpacked_left + 1)
        except zlib.error as error:
            raise ValueError(error) from None
        if len(content) > self._unpacked_left:
            raise TooLarge(f"expands to over {LARGEST_EXPANSION} times its size")
        if not unpacker.eof:
            raise ValueError("it is cut short")
        self._unpacked_left -= len(content)
        self.take(len(content))
        return content

    def take(self, size: int) -> None:
        """Counts bytes of memory before they are allocated.

        Raises:
            TooLarge: the blob, or its job, may not take so many more.
        """
        taken = self._taken + size
        if taken > min(MOST_BYTES, _TAKEN_ALWAYS + BYTES_PER_BYTE * self._packed):
            raise TooLarge(f"takes over {BYTES_PER_BYTE} times its size in memory")
        if self._of_job is not None:
            self._of_job.take(size, self._beyond(taken) - self._beyond(self._taken))
        self._taken = taken

    def check_rows(self, count: int, bytes_of_row: int) -> None:
        """Whether the blob can have so many rows: what is asked about them takes time and memory for each.

        Args:
            count: of the rows of its tables.
            bytes_of_row: fewer bytes of the blob than any recorded one has for a row.

        Raises:
            TooLarge: it cannot.
        """
        if count > _ROWS_ALWAYS + self._packed // bytes_of_row:
            raise TooLarge(f"has {count:,} rows in {self._packed:,} bytes")

    def may_take(self, size: int) -> bool:
        """Takes the bytes where that many are left, for what the blob can do without."""
        try:
            self.take(size)
        except TooLarge:
            return False
        return True

    def keep(self, size: int, shared: int = 0) -> None:
        """Gives back what is over when the blob is decoded.

        Args:
            size: bytes that stay as long as the blob, 0 of one that is dropped.
            shared: bytes that stay as long as the job, because blobs of other ranks use them, too.
        """
        self._shared += shared
        taken = size + self._shared
        if self._of_job is not None:
            self._of_job.give_back(self._taken - taken, self._beyond(self._taken) - self._beyond(taken))
        self._taken = taken

    def _beyond(self, taken: int) -> int:
        """Of so many bytes those that are not in proportion to the blob."""
        return max(0, taken - BYTES_PER_BYTE * self._packed)


class JobAllowance:
    """What the blobs of one job take together: each by its size, so that none takes from the others, and all of them
    together a little beyond that."""

    def __init__(self) -> None:
        self.taken = self._beyond = 0

    def take(self, size: int, beyond: int) -> None:
        """Counts bytes of memory of one of the blobs, and those of them that are beyond what its size allows.

        Raises:
            TooLarge: the job may not take so many more.
        """
        if self.taken + size > MOST_BYTES or self._beyond + beyond > _TAKEN_BY_JOB:
            raise TooLarge("takes, with the other ranks of its job, more memory than files of their size")
        self.taken += size
        self._beyond += beyond

    def give_back(self, size: int, beyond: int) -> None:
        """Counts bytes that are free again."""
        self.taken -= size
        self._beyond -= beyond


def largest_unpacked(packed: int) -> int:
    """Bytes that a blob of so many bytes may unpack to."""
    return max(_UNPACKED_ALWAYS, LARGEST_EXPANSION * packed)
