"""Answers as they are sent, made once for everybody who asks the same of the same profiles."""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections.abc import Callable, Hashable

import msgspec

from tb_dlprof_plugin.store.last_used import LastUsed
from tb_dlprof_plugin.web.respond import PACKING_LEVEL, Answer, encode_piece

_MOST_BYTES = 64_000_000
"""Of all answers, packed: one has 2 to 100 kB."""
_OVERHEAD_BYTES = 1_000
_LONG_TABLES = 4


class KeptAnswers:
    """The answers that were asked for last, by question and by what they are made of.

    Safe to call from several threads.
    """

    def __init__(self) -> None:
        self._answers: LastUsed[Answer] = LastUsed(_MOST_BYTES, lambda answer: len(answer.packed) + _OVERHEAD_BYTES)
        # Tables that are sent in pieces: a piece is cut from the page, which is not made again for each.
        self._pages: LastUsed[msgspec.Struct] = LastUsed(_LONG_TABLES)
        # One page of a run and one table of runs are computed at a time. The interpreter has one lock: more would not
        # be ready sooner, and each thread that wants the lock makes every other request, TensorBoard's own too, wait
        # longer for it. Tables, which take a fraction of a second, do not stand in the line of pages, which may take
        # several.
        self._of_runs, self._of_tables = threading.Lock(), threading.Lock()

    def get(
        self,
        question: Hashable,
        content: Hashable,
        offset: int,
        make: Callable[[], msgspec.Struct],
        of_table: bool = False,
    ) -> Answer:
        """The answer to a question from ``offset`` of its table on.

        ``content`` names what it is made of: with other profiles it is another answer. One that is not complete yet is
        not kept. ``of_table``: whether it is made of the figures of all runs, which are stored with the profiles.

        Raises:
            RequestError: as ``make`` does.
        """

        def made() -> Answer:
            with self._of_tables if of_table else self._of_runs:
                page = self._pages.known((question, content)) or make()
                data, more = encode_piece(page, offset)
            complete = is_complete(page)
            # A page with an offset of its own holds its piece alone.
            if complete and more and not hasattr(page, "offset"):
                self._pages.keep((question, content), page)
            return Answer(
                gzip.compress(data, PACKING_LEVEL, mtime=0), hashlib.blake2s(data, digest_size=12).hexdigest(), complete
            )

        return self._answers.get((question, content, offset), made, lambda answer: answer.complete)


def is_complete(page: msgspec.Struct) -> bool:
    """Whether all runs of a table of runs have been read."""
    done: int | None = getattr(page, "done", None)
    return done is None or done == getattr(page, "total", None)
