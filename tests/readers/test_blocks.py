"""A trace file is read in blocks, with the fraction that was read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb_dlprof_plugin.readers.kineto import blocks
from tb_dlprof_plugin.readers.kineto.json_recovery.log import Damage


def test_progress_is_the_fraction_of_the_file_that_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4)
    file = tmp_path / "trace.json"
    file.write_bytes(b"0123456789")
    fractions: list[float] = []
    assert list(blocks.read_blocks(file, Damage(), fractions.append)) == [b"0123", b"4567", b"89"]
    assert fractions == [0.4, 0.8, 1.0]


def test_of_a_file_that_grows_while_it_is_read_no_more_than_all_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 4)
    file = tmp_path / "trace.json"
    file.write_bytes(b"0123")
    fractions: list[float] = []
    reading = blocks.read_blocks(file, Damage(), fractions.append)
    assert next(reading) == b"0123"
    file.write_bytes(b"01234567")
    assert list(reading) == [b"4567"]
    assert fractions == [1.0, 1.0]
