"""Breaks sound traces in every way that we know, and says what must hold of whatever comes out.

As a script it runs for the given minutes. What breaks the reader is written to ``tests/readers/corpus`` in its smallest
form, where a test reads it ever after. `hostile.guided` does the same guided by the code that an input reaches.

    python tests/support/broken_traces.py --minutes 10 [--seed 1]
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import json
import random
import re
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Collection
from pathlib import Path

import numpy as np

from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.model.profile import Profile
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.readers.errors import TraceError
from tb_dlprof_plugin.store.codec import decode, encode

TRACES = Path(__file__).parents[1] / "traces"
CORPUS = Path(__file__).parents[1] / "readers" / "corpus"

Mutation = tuple[str, float, int, bytes]
"""What is done, where in the text (0 to 1), over how many bytes, and with which text."""

INSERTED = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"\0", b"\x1b", b"\xff", b"\xed\xa0\x80", b"NaN", b"-inf",
    b"null", b"1e999", b"}, {", b']}', b'"}], "x": [{"', b"\\u", b"\\ud800", b'{"ph": "X"', b"\xef\xbb\xbf", b" " * 300,
    b"[" * 3000, b"9" * 5000,
)  # fmt: skip
NUMBERS = (
    b"-1", b"0", b"NaN", b"-Infinity", b"1e300", b"-1e300", b"9223372036854775807", b"9223372036854775808",
    b"18446744073709551615", b"-9223372036854775808", b"1e18", b"4294967296", b"2147483648", b"0.0004", b'"7"', b"null",
    b"[]", b"{}", b"true", b'"\xc2\xb2"', b"9" * 400, b"70368744177663", b"1700000000000000.123", b"123456789012345678",
)  # fmt: skip
_NUMBER = re.compile(rb"(?<=[:,\[ ])-?\d[\d.eE+-]*")
_STRING = re.compile(rb'(?<=": )"[^"\\]*"')
_CUT = re.compile(rb"\}\s*,\s*(?=\{)")


def _insert(text: bytes, at: int, length: int, payload: bytes) -> bytes:
    return text[:at] + payload + text[at:]


def _flip(text: bytes, at: int, length: int, payload: bytes) -> bytes:
    return text[:at] + bytes(b ^ (1 << length % 8) for b in text[at : at + 1]) + text[at + 1 :]


def _delete(text: bytes, at: int, length: int, payload: bytes) -> bytes:
    return text[:at] + text[at + length :]


def _double(text: bytes, at: int, length: int, payload: bytes) -> bytes:
    return text[: at + length] + text[at:]


def _truncate(text: bytes, at: int, length: int, payload: bytes) -> bytes:
    return text[:at]


def _replace(pattern: re.Pattern[bytes]) -> Callable[[bytes, int, int, bytes], bytes]:
    def replace(text: bytes, at: int, length: int, payload: bytes) -> bytes:
        found = pattern.search(text, at)
        return text[: found.start()] + payload + text[found.end() :] if found else text

    return replace


def _swap(text: bytes, at: int, length: int, payload: bytes) -> bytes:
    """Moves the event behind a place to behind the next one."""
    cuts = [match.end() for _, match in zip(range(3), _CUT.finditer(text, at), strict=False)]
    if len(cuts) < 3:
        return text
    a, b, c = cuts
    return text[:a] + text[b:c] + text[a:b] + text[c:]


MUTATIONS: dict[str, Callable[[bytes, int, int, bytes], bytes]] = {
    "insert": _insert,
    "flip": _flip,
    "delete": _delete,
    "double": _double,
    "truncate": _truncate,
    "number": _replace(_NUMBER),
    "string": _replace(_STRING),
    "swap": _swap,
}
PAYLOADS = {"number": NUMBERS, "string": (*NUMBERS, b'"ProfilerStep#\xc2\xb2"', b'"ProfilerStep#99999999999999999999"')}


def apply(text: bytes, mutations: list[Mutation]) -> bytes:
    """The text after all mutations."""
    for kind, place, length, payload in mutations:
        text = MUTATIONS[kind](text, int(place * len(text)), length, payload)
    return text


def draw(source: random.Random) -> list[Mutation]:
    """A few mutations, most of them small."""
    result: list[Mutation] = []
    for _ in range(source.choice((1, 1, 2, 3, 8))):
        kind = source.choice(list(MUTATIONS))
        length = source.choice((1, 2, 10, 100, 1000))
        result.append((kind, source.random(), length, source.choice(PAYLOADS.get(kind, INSERTED))))
    return result


def recorded(only: Collection[str] = ()) -> dict[str, Path]:
    """Files of the recorded traces, by default of all, by name."""
    found = {path.name.split(".")[0]: path for path in sorted(TRACES.glob("*.pt.trace.json.gz"))}
    return {name: path for name, path in found.items() if not only or name in only}


@functools.cache
def sound_traces(events: int = 60, only: tuple[str, ...] = ()) -> dict[str, bytes]:
    """The recorded traces, by default all, each with at most so many of its events, by name."""
    result = {}
    for name, path in recorded(only).items():
        text = gzip.decompress(path.read_bytes())
        try:
            document = json.loads(text)
        except ValueError:  # old exporters wrote no sound JSON themselves
            result[name] = text[: 400 * events]
            continue
        all_events = document["traceEvents"] if isinstance(document, dict) else document
        step = max(1, len(all_events) // events)
        kept = all_events[::step]
        short = document | {"traceEvents": kept} if isinstance(document, dict) else kept
        result[name] = json.dumps(short, indent=1).encode()
    return result


def check(path: Path) -> Profile | str:
    """Reads a file as the plugin does; the profile, or the message of its one error.

    Raises:
        AssertionError: the result contradicts itself.
        Exception: any but a `TraceError` is a bug.
    """
    try:
        profile = analyze_trace(path)
    except TraceError as error:
        message = str(error)
        assert str(path) in message, "the error names the file"
        assert message.endswith("."), "the error is a sentence"
        assert "\n" not in message
        return message
    agrees_with_itself(profile)
    return profile


def agrees_with_itself(profile: Profile) -> None:
    """Holds a profile to what is true of each: sums, signs, and that it is stored as it is.

    Raises:
        AssertionError: the profile contradicts itself.
    """
    stored = decode(encode(profile))
    iterations = stored.iterations
    wall = iterations.stop_ns - iterations.start_ns
    assert (wall >= 0).all(), "no iteration ends before it begins"
    assert (iterations.category_ns >= 0).all(), "no category is negative"
    assert (iterations.category_ns.sum(axis=2) == wall[:, None]).all(), "categories sum to the wall time"
    assert (stored.calls.duration_ns >= 0).all()
    tables = ((profile.calls, stored.calls), (profile.launches, stored.launches), (profile.memory, stored.memory))
    for table, again in tables:
        for name in type(table).__slots__:
            np.testing.assert_array_equal(getattr(table, name), getattr(again, name), err_msg=name)
    ProfileView(stored)


def breaks(text: bytes, path: Path) -> str:
    """What goes wrong with such a file; "" if nothing does."""
    path.write_bytes(text)
    return fault_of(lambda: check(path), len(text))


def fault_of(read: Callable[[], object], size: int) -> str:
    """What goes wrong with reading a file of so many bytes; "" if nothing does."""
    begin = time.process_time()
    try:
        read()
    except (Exception, RecursionError) as error:
        at = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {Path(at.filename).name}:{at.lineno}: {error}".splitlines()[0][:200]
    seconds = time.process_time() - begin
    return f"{seconds:.1f} s" if seconds > 2 + size / 2e5 else ""


def smallest(text: bytes, path: Path, seconds: float = 20) -> bytes:
    """A shorter file that breaks in the same place: pieces are left out for as long as it does."""
    kind = breaks(text, path).split(":")[0]
    end = time.monotonic() + seconds
    size = len(text) // 2
    while size and time.monotonic() < end:
        at = 0
        while at < len(text) and time.monotonic() < end:
            shorter = text[:at] + text[at + size :]
            if breaks(shorter, path).split(":")[0] == kind:
                text = shorter
            else:
                at += size
        size //= 2
    return text


def campaign(minutes: float, seed: int) -> int:
    """Breaks traces until the time is over; returns how many new ways of breaking the reader were found."""
    source = random.Random(seed)
    traces = [*sound_traces(20).values(), *sound_traces(80).values()]
    traces += [path.read_bytes() for path in sorted(CORPUS.glob("*")) if path.suffix not in (".gz", ".toml")]
    seen: dict[str, int] = {}
    count = 0
    end = time.monotonic() + 60 * minutes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        while time.monotonic() < end:
            count += 1
            text = apply(source.choice(traces), draw(source))
            if source.random() < 0.05:
                text = apply(
                    gzip.compress(text, 1), [m for m in draw(source) if m[0] in ("flip", "truncate", "delete")]
                )
            wrong = breaks(text, path)
            if not wrong:
                continue
            kind = wrong.split(":")[0] + ":" + wrong.split(":")[1] if " in " in wrong else "slow"
            seen[kind] = seen.get(kind, 0) + 1
            if seen[kind] == 1:
                small = smallest(text, path)
                keep(small)
                print(f"{count}: {wrong} ({len(small)} bytes kept)", flush=True)
    print(f"{count} files, {len(seen)} ways to break the reader: {seen}")
    return len(seen)


def keep(text: bytes) -> None:
    """Adds a file to the corpus, named by what it holds."""
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"found_{hashlib.sha256(text).hexdigest()[:12]}.json").write_bytes(text)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description="Look for files that break the reader.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.exit(1 if campaign(args.minutes, args.seed) else 0)


if __name__ == "__main__":
    main()
