"""`tb-dlprof --help` lists every subcommand as its own help does, without importing any."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.commands import COMMANDS
from tb_dlprof_plugin.cli.main import app

LIGHT = """
import sys
from tb_dlprof_plugin.cli.main import app
try:
    app(["--help"])
except SystemExit:
    loaded = {name.partition(".")[0] for name in sys.modules}
    print("loaded:", *sorted(loaded & {"numpy", "msgspec", "tensorboard", "google", "rich"}))
    print("imported:", *sorted(name for name in sys.modules if name.startswith("tb_dlprof_plugin.")))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_says_of_a_subcommand_what_its_own_help_begins_with(command: str) -> None:
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0, result.output
    assert result.stdout.split("\n\n")[1].strip() == COMMANDS[command].summary


def test_the_list_has_every_subcommand_and_nothing_else() -> None:
    listed = CliRunner().invoke(app, ["--help"]).stdout.partition("Commands:\n")[2].strip().splitlines()
    assert [tuple(line.split(maxsplit=1)) for line in listed] == [(one.name, one.summary) for one in COMMANDS.values()]


def test_the_list_imports_no_subcommand_and_nothing_heavy() -> None:
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=120)
    *_, loaded, imported = done.stdout.splitlines()
    assert loaded.strip() == "loaded:"
    assert set(imported.split()[1:]) == {
        "tb_dlprof_plugin.cli",
        "tb_dlprof_plugin.cli.commands",
        "tb_dlprof_plugin.cli.dlprof_aliases",
        "tb_dlprof_plugin.cli.main",
        "tb_dlprof_plugin.cli.options_behind",
        "tb_dlprof_plugin.cli.terminal",
        "tb_dlprof_plugin.model",
        "tb_dlprof_plugin.model.lazy_imports",
        "tb_dlprof_plugin.model.visible",
        "tb_dlprof_plugin.version",
    }
