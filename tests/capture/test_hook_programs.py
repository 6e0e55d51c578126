"""Programs that profile themselves, copy and compile their models, and fork do the same with the hook as without it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from support.hook_programs import PROGRAMS, Program, draw, try_program
from support.marks import short_of
from support.program_server import ProgramServer

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are seen through /proc")

SHORT = {
    "torch.profiler + a recorded step", "a range that ends in a profiler + a recorded step",
    "torch.profiler + from before to within", "torch.profiler + another thread over boundaries",
    "torch.profiler + an exception", "profile twice + torch.profiler + from within to after",
    "trace handler next to it + torch.profiler + from within to after", "stepping child", "loader workers",
}  # fmt: skip
"""One or two of a kind. In most of them nothing is left to analyse."""


@pytest.fixture(scope="module")
def server() -> Iterator[ProgramServer]:
    with ProgramServer.running() as running:
        yield running


@pytest.mark.parametrize("program", short_of(PROGRAMS, SHORT, lambda one: one.name), ids=lambda one: one.name)
def test_the_hook_changes_nothing(server: ProgramServer, program: Program, tmp_path: Path) -> None:
    outcome = try_program(server, program, tmp_path)
    assert outcome.harm == []
    assert (outcome.alone.status, outcome.alone.err.count("Traceback")) == (0, 0), outcome.alone.err


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_the_hook_changes_nothing_in_drawn_programs(server: ProgramServer, seed: int, tmp_path: Path) -> None:
    for number, program in enumerate(itertools.islice(draw(seed), 10)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert (program, try_program(server, program, folder).harm) == (program, [])
