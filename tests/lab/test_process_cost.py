"""Time and memory of whole processes."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import process_cost
import pytest
from process_cost import CommandFailed, run

MEGABYTE = 10**6
HOLD = "import time; block = bytearray(b'x' * {size}); time.sleep({seconds})"


def test_time_is_the_clocks() -> None:
    begun_s = time.perf_counter()
    ended = run([sys.executable, "-c", "import time; time.sleep(0.3); print('done')"])
    assert 0.3 <= ended.seconds <= time.perf_counter() - begun_s
    assert ended.output == "done\n"


def test_memory_is_the_peak() -> None:
    # GIVEN a small process that measures: a child's high-water mark starts at its parent's size, and this one is large
    measure = (
        "import process_cost, sys\n"
        f"hold = {HOLD!r}.format(size=int(sys.argv[1]), seconds=0)\n"
        "print(process_cost.run([sys.executable, '-c', hold]).peak_bytes)"
    )
    speed = Path(process_cost.__file__).parent
    small, large = (
        int(subprocess.check_output([sys.executable, "-c", measure, str(size)], cwd=speed))
        for size in (1, 200 * MEGABYTE)
    )
    assert 190 * MEGABYTE < large - small < 500 * MEGABYTE


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's /proc")
def test_memory_of_children_is_added() -> None:
    hold = HOLD.format(size=100 * MEGABYTE, seconds=1)
    start = f"subprocess.Popen([sys.executable, '-c', {hold!r}])"
    code = f"import subprocess, sys; children = [{start}, {start}]; [child.wait() for child in children]"
    assert run([sys.executable, "-c", code], watch=True).peak_bytes > 200 * MEGABYTE


def test_a_failure_is_told_with_its_words() -> None:
    with pytest.raises(CommandFailed, match="no such thing"):
        run([sys.executable, "-c", "import sys; sys.exit('no such thing')"])
