"""The files of a commit are put next to the repository, and nothing outside of that folder is written."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tb_dlprof_plugin.pytest_plugin.base_checkout import BaseError, check_out


def _git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "repository"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "test_speed.py").write_text("old")
    _git(folder, "init", "-q", "-b", "main")
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", "first")
    return folder


def test_a_checkout_has_the_commits_files_and_the_working_trees_test(repository: Path) -> None:
    (repository / "tests" / "conftest.py").write_text("conftest")
    checkout = check_out("main", repository / "tests")
    try:
        place = checkout.place_of(repository / "tests" / "test_speed.py")
        assert place.read_text() == "old"
        (repository / "tests" / "test_speed.py").write_text("new")
        checkout.with_test(repository / "tests" / "test_speed.py", repository)
        assert place.read_text() == "new"
        assert (place.parent / "conftest.py").read_text() == "conftest"
    finally:
        checkout.remove()
    assert not checkout.folder.exists()


def test_a_link_in_the_commit_leads_no_write_out_of_the_checkout(repository: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (repository / "tests" / "test_speed.py").unlink()
    (repository / "tests").rmdir()
    (repository / "tests").symlink_to(outside)
    _git(repository, "add", ".")
    _git(repository, "commit", "-q", "-m", "a link")
    (repository / "tests").unlink()
    (repository / "tests").mkdir()
    test = repository / "tests" / "test_speed.py"
    test.write_text("new")
    checkout = check_out("main", repository)
    try:
        with pytest.raises(BaseError, match="is a link that leads elsewhere"):
            checkout.with_test(test, repository)
    finally:
        checkout.remove()
    assert list(outside.iterdir()) == []


def test_a_test_outside_of_the_repository_is_refused(repository: Path, tmp_path: Path) -> None:
    checkout = check_out("main", repository)
    try:
        with pytest.raises(BaseError, match="is not in the repository"):
            checkout.with_test(tmp_path.resolve() / "test_speed.py", repository)
    finally:
        checkout.remove()


def test_where_there_is_no_repository_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(BaseError, match="is in no git repository, so that there is no base 'main'"):
        check_out("main", tmp_path)
