"""Time and memory of whole processes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from process_cost import CommandFailed, run

MEGABYTE = 10**6
HOLD = "import time; block = bytearray(b'x' * {size}); time.sleep({seconds})"


def test_time_is_the_clocks() -> None:
    ended = run([sys.executable, "-c", "import time; time.sleep(0.3); print('done')"])
    assert 0.3 <= ended.seconds < 5
    assert ended.output == "done\n"


def test_memory_is_the_peak() -> None:
    small = run([sys.executable, "-c", HOLD.format(size=1, seconds=0)])
    large = run([sys.executable, "-c", HOLD.format(size=200 * MEGABYTE, seconds=0)])
    assert 190 * MEGABYTE < large.peak_bytes - small.peak_bytes < 500 * MEGABYTE


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_memory_of_children_is_added() -> None:
    hold = HOLD.format(size=100 * MEGABYTE, seconds=1)
    start = f"subprocess.Popen([sys.executable, '-c', {hold!r}])"
    code = f"import subprocess, sys; children = [{start}, {start}]; [child.wait() for child in children]"
    assert run([sys.executable, "-c", code], watch=True).peak_bytes > 200 * MEGABYTE


def test_a_failure_is_told_with_its_words() -> None:
    with pytest.raises(CommandFailed, match="no such thing"):
        run([sys.executable, "-c", "import sys; sys.exit('no such thing')"])
