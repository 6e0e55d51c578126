"""Writes a file whole: under another name, which nothing else has, and moved into place when all of it is there."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A new file for writing, which takes the place of ``path`` at the end of the block. It is removed if that fails.

    A link at ``path`` is replaced itself, and not what it points to.

    Raises:
        OSError: the folder cannot be written.
    """
    # TensorBoard reads any file with "tfevents" in its name, and other readers any trace: this name must have neither.
    temporary = path.with_name(f".{secrets.token_hex(8)}.tb_dlprof.tmp")
    try:
        with open(temporary, "xb") as file:
            yield file
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
