"""Files made to fill the memory or to be read without end: both stay bounded. Each is read in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from support.marks import long, short_of

MEGABYTE = 1 << 20
SMALL = b'{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1},'
BAD = b'{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":[]},'
_READ = """
import json, resource, sys, time
from tb_dlprof_plugin.readers.kineto.reader import read_kineto
from tb_dlprof_plugin.readers.errors import TraceError
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    (timeline,) = read_kineto(sys.argv[1])
    found = {"rows": len(timeline.host), "notes": {n.code: n.count for n in timeline.notes}}
except TraceError as error:
    found = {"error": str(error)}
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps(found | {"kilobytes": usage.ru_maxrss - before, "seconds": usage.ru_utime + usage.ru_stime}))
"""


def gzip_of(path: Path, head: bytes, repeated: bytes, megabytes: int) -> Path:
    """A gzip file of ``head`` and then ``repeated`` for gigabytes: packed once, and written again and again."""
    pack = zlib.compressobj(9, zlib.DEFLATED, 31)
    unit = repeated * (4 * MEGABYTE // len(repeated))
    parts = [pack.compress(head) + pack.flush(zlib.Z_FULL_FLUSH)]
    # After a full flush nothing refers back: this piece may stand any number of times.
    piece = pack.compress(unit) + pack.flush(zlib.Z_FULL_FLUSH)
    with path.open("wb") as file:
        file.write(parts[0])
        for _ in range(megabytes // 4):
            file.write(piece)
    return path


def read(path: Path) -> dict:
    """What reading gives; the process may not take more than 6 GB of addresses, nor a minute of its core's time."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        resource.setrlimit(resource.RLIMIT_CPU, (100, 100))

    command = [sys.executable, "-c", _READ, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def list_of(text: bytes) -> tuple[bytes, bytes]:
    return b'{"traceEvents": [', text


BOMBS: dict[str, tuple[bytes, bytes]] = {
    "blanks": (b"", b" "),
    "zeros": (b"", b"\0"),
    "brackets": (b"", b"["),
    "braces": (b"", b'{"a":'),
    "empty objects": list_of(b"{},"),
    "events without end": list_of(b'{"ph":"X","args":{"a":['),
    "blanks behind the first bracket": list_of(b" "),
    "a string without end": list_of(b"a"),
    "a name without end": (b'{"traceEvents": [{"ph": "X", "name": "', b"x"),
    "quotes": (b'{"traceEvents": [{"ph": "X", "name": "', b'", "'),
    "the same event": list_of(SMALL),
    "the same bad event": list_of(BAD),
    "small things that are no event": list_of(b'{"ph":1},'),
    "a list that ends, and more": (b'{"traceEvents": [' + SMALL[:-1] + b'], "x": "', b"y"),
}


SHORT = ("a name without end", "the same event")
"""One long value, and events; depth and what follows the events fill a file, too."""


@pytest.mark.slow
@pytest.mark.parametrize("gigabytes", [1, long(4)])
@pytest.mark.parametrize("case", short_of(BOMBS, SHORT))
def test_gigabytes_behind_a_small_gzip_take_little_memory_and_time(tmp_path: Path, case: str, gigabytes: int) -> None:
    path = gzip_of(tmp_path / "bomb.json.gz", *BOMBS[case], 1024 * gigabytes)
    assert path.stat().st_size < 16 * MEGABYTE
    found = read(path)
    assert str(path) in found.get("error", str(path))
    assert found["kilobytes"] < 600 * 1024
    assert found["seconds"] < 60


@pytest.mark.long
@pytest.mark.parametrize("case", ["brackets", "a name without end", "a list that ends, and more"])
def test_the_same_as_plain_files(tmp_path: Path, case: str) -> None:
    head, repeated = BOMBS[case]
    path = tmp_path / "bomb.json"
    path.write_bytes(head + repeated * (80 * MEGABYTE // len(repeated)))
    found = read(path)
    assert found["kilobytes"] < 600 * 1024
    assert found["seconds"] < 90


@pytest.mark.long
def test_a_large_trace_that_packs_well_is_read_whole(tmp_path: Path) -> None:
    # GIVEN 300 MB of events of which no two are alike, packed 30 to 100 times
    name = b"void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast>(int)" * 8
    path, count = tmp_path / "large.json.gz", 400_000
    pack = zlib.compressobj(6, zlib.DEFLATED, 31)
    with path.open("wb") as file:
        file.write(pack.compress(b'{"traceEvents": ['))
        event = b'{"ph": "X", "cat": "cpu_op", "name": "%s", "ts": %d, "dur": 1},'
        for start in range(0, count, 1000):
            file.write(pack.compress(b"".join(event % (name, n * 7) for n in range(start, start + 1000))))
        file.write(pack.compress(event[:-1] % (name, 1) + b"]}") + pack.flush())
    assert path.stat().st_size < 300 * MEGABYTE / 30

    found = read(path)

    assert (found["rows"], found["notes"]) == (count + 1, {})
    assert found["kilobytes"] < 300 * 1024
