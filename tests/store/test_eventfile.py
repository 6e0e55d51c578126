"""Event files: whole or not at all, and readable by TensorBoard."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import masked_crc32c
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.store.codec import ProfileError
from tb_dlprof_plugin.store.event_file import read_blobs, write_profile
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.tags import Tag


def test_tensorboards_own_reader_accepts_every_checksum(cpu_view: ProfileView, tmp_path: Path) -> None:
    path = write_profile(tmp_path, cpu_view.profile)
    data, offset, records = path.read_bytes(), 0, 0
    while offset < len(data):
        (length,) = struct.unpack_from("<Q", data, offset)
        body = data[offset + 12 : offset + 12 + length]
        checks = struct.unpack_from("<I", data, offset + 8) + struct.unpack_from("<I", data, offset + 12 + length)
        assert checks == (masked_crc32c(data[offset : offset + 8]), masked_crc32c(body))
        offset += 16 + length
        records += 1
    assert records == 2
    version, summary = list(EventFileLoader(str(path)).Load())
    assert version.file_version == "brain.Event:2"
    (value,) = summary.summary.value
    assert (value.tag, summary.step) == ("tb_dlprof/v1/trace/rank0", 0)
    assert value.metadata.plugin_data.plugin_name == "tb_dlprof"
    assert [dim.size for dim in value.tensor.tensor_shape.dim] == [1]


@pytest.mark.parametrize("cycle", [0, 3, 2**40])
def test_a_file_has_the_bytes_that_protobuf_makes_of_it(cpu_view: ProfileView, tmp_path: Path, cycle: int) -> None:
    profile = replace(cpu_view.profile, source=replace(cpu_view.profile.source, cycle=cycle))
    data, at = write_profile(tmp_path, profile, b"facts").read_bytes(), 0
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        body = data[at + 12 : at + 12 + length]
        assert Event.FromString(body).SerializeToString() == body
        at += 16 + length
    assert Event.FromString(body).step == cycle
    assert [value.tensor.string_val[0] for value in Event.FromString(body).summary.value[1:]] == [b"facts"]


def test_the_file_alone_is_left_under_a_name_that_tensorboard_reads(cpu_view: ProfileView, tmp_path: Path) -> None:
    path = write_profile(tmp_path / "run" / "new", cpu_view.profile)
    assert [p.name for p in (tmp_path / "run" / "new").iterdir()] == [path.name]
    assert path.name.startswith("events.out.tfevents.")
    assert path.name.endswith(".tb_dlprof")


def test_names_sort_in_the_order_of_writing_even_within_a_second(cpu_view: ProfileView, tmp_path: Path) -> None:
    written = [write_profile(tmp_path, cpu_view.profile) for _ in range(8)]
    assert sorted(tmp_path.iterdir()) == written


FULL_DISK = """
import pathlib, resource, signal, sys
from tb_dlprof_plugin.analysis import analyze_trace
from tb_dlprof_plugin.store.event_file import write_profile
profile = analyze_trace(sys.argv[1])
seen = []
sys.addaudithook(lambda event, args: seen.append(str(args[0])) if event == "open" and "x" in str(args[1]) else None)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    write_profile(sys.argv[2], profile)
except OSError:
    (opened,) = [name for name in seen if name.startswith(sys.argv[2])]
    sys.exit(3 if "tfevents" not in opened else 4)
"""


def test_a_file_that_cannot_be_written_whole_leaves_nothing(cpu_trace, tmp_path: Path) -> None:
    # GIVEN a disk that is full after 100 bytes
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(cpu_trace.write()), str(tmp_path / "run")],
        cwd=Path(__file__).resolve().parents[2], capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    # THEN the error is reported, the name in use meanwhile was none that TensorBoard reads, and no file remains
    assert done.returncode == 3, done.stderr
    assert list((tmp_path / "run").iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_os_error(cpu_view: ProfileView, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OSError, match="file"):
        write_profile(tmp_path / "file" / "run", cpu_view.profile)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_profiles_are_read_back_from_a_file_a_run_and_a_logdir(training, tmp_path: Path) -> None:
    trace = training(steps=1)
    paths = [write_profile(tmp_path / run, trace.profile(session="s", cycle=cycle)) for run, cycle in
             (("a", 0), ("a", 1), ("b/c", 0))]  # fmt: skip
    found = {(stored.path, stored.profile.source.cycle) for stored in read_profiles(tmp_path)}
    assert found == set(zip(paths, (0, 1, 0), strict=True))
    assert [s.profile.source.session for s in read_profiles(tmp_path / "a")] == ["s", "s"]
    assert [s.path for s in read_profiles(paths[2])] == [paths[2]]


def test_another_writers_event_file_is_passed_over(cpu_view: ProfileView, tmp_path: Path) -> None:
    writer = EventFileWriter(str(tmp_path))
    writer.close()
    (foreign,) = tmp_path.iterdir()
    assert list(read_blobs(foreign, "run")) == []
    assert read_profiles(tmp_path) == []
    mine = write_profile(tmp_path, cpu_view.profile)
    assert [stored.path for stored in read_profiles(tmp_path)] == [mine]


def _record(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-5],
        lambda data: data[: len(data) // 2],
        lambda data: data[:7],
        lambda data: data[:-20] + b"x" * 20,
        lambda data: b"hello, world, this is text",
        lambda data: _record(b"\xff\xff\xff"),
    ],
    ids=["end cut", "half", "header cut", "end changed", "text", "record of another kind"],
)
def test_a_damaged_file_is_named_in_one_sentence(cpu_view: ProfileView, tmp_path: Path, damage) -> None:
    path = write_profile(tmp_path, cpu_view.profile)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ProfileError) as caught:
        read_profiles(tmp_path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_path_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="missing does not exist"):
        read_profiles(tmp_path / "missing")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tb_dlprof/v1/20260101-1.a_b/rank12", Tag("20260101-1.a_b", 12)),
        ("tb_dlprof/v1//rank0", None),
        ("tb_dlprof/v2/s/rank0", None),
        ("tb_dlprof/v1/s/rank0\n", None),
        ("tb_dlprof/v1/a/b/rank0", None),
        ("loss", None),
    ],
)
def test_tags_are_parsed_and_foreign_ones_refused(text: str, expected: Tag | None) -> None:
    assert Tag.parse(text) == expected
    if expected:
        assert str(expected) == text
