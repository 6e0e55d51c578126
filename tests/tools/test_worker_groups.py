"""Groups of tests that run in one worker: files that exist, a group for each other file and each recording."""

from __future__ import annotations

from pathlib import Path

from support.worker_groups import BEGIN_FIRST, SHARED, group_of

ROOT = Path(__file__).resolve().parents[2]


def test_files_that_begin_first_or_share_a_group_are_there() -> None:
    assert [one for one in BEGIN_FIRST if one not in SHARED and not (ROOT / one).is_file()] == []
    for group, paths in SHARED.items():
        for path in paths:
            assert (ROOT / path).is_file()
            assert group_of(f"{path}::test_it[a]") == group


def test_other_files_and_each_recording_are_a_group() -> None:
    assert group_of("tests/web/test_limits.py::test_it[a::b]") == "tests/web/test_limits.py"
    assert group_of("tests/invariants/test_pages.py::test_it[cuda_only]") == "recording cuda_only"
    assert group_of("tests/invariants/test_accounts.py::test_other[cuda_only]") == "recording cuda_only"
    assert group_of("tests/invariants/test_pages.py::test_it") == "tests/invariants/test_pages.py"
