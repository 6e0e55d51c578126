"""Help of `tb-dlprof` and of its subcommands says what these say of themselves, without importing any."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from tb_dlprof_plugin.cli.commands import COMMANDS, GROUPS
from tb_dlprof_plugin.cli.main import HELP_FILE, Listed, app

LIGHT = """
import sys
from tb_dlprof_plugin.cli.main import app
try:
    app([*sys.argv[1:], "--help"])
except SystemExit:
    loaded = {name.partition(".")[0] for name in sys.modules}
    print("loaded:", *sorted(loaded & {"numpy", "msgspec", "tensorboard", "google", "rich"}))
    print("imported:", *sorted(name for name in sys.modules if name.startswith("tb_dlprof_plugin.")))
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_what_the_subcommand_itself_says(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], prog_name="tb-dlprof")
    itself = Listed(COMMANDS[command]).loaded()
    own = itself.make_context(f"tb-dlprof {command}", [], resilient_parsing=True, terminal_width=80).get_help()
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.rstrip() == own.rstrip(), "run `make generate`, and commit what it writes"
    assert shown.stdout.split("\n\n")[1].strip() == COMMANDS[command].summary


def test_the_list_has_every_subcommand_once_in_its_group() -> None:
    shown = CliRunner().invoke(app, ["--help"]).stdout
    for heading, names in GROUPS.items():
        section = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0].splitlines()
        assert [tuple(line.split(maxsplit=1)) for line in section] == [(name, COMMANDS[name].summary) for name in names]
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_few_options_come_first_and_those_listed_last_exist(command: str) -> None:
    sections = json.loads(HELP_FILE.read_text())[command]["sections"]
    assert len(sections["Options"]) <= 12
    last = " ".join(sections.get("More options", {}))
    assert [name for name in COMMANDS[command].more.split() if f"--{name}" not in last] == []


def test_help_behind_other_options_and_of_the_script_behind_run() -> None:
    assert CliRunner().invoke(app, ["ops", "RUN", "--limit", "3", "--help"]).stdout.startswith("Usage: ")
    script = CliRunner().invoke(app, ["run", "--reports", "all", "no_such_file.py", "--help"])
    assert script.exit_code != 0
    assert "Usage: " not in script.stdout


def test_a_near_name_is_suggested() -> None:
    assert "Did you mean 'summary'?" in CliRunner().invoke(app, ["sumary"]).stderr


@pytest.mark.parametrize("asked", ["", "ops", "run"])
def test_help_imports_no_subcommand_and_nothing_heavy(asked: str) -> None:
    command = [sys.executable, "-c", LIGHT, *asked.split()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    *_, loaded, imported = done.stdout.splitlines()
    assert loaded.strip() == "loaded:"
    assert set(imported.split()[1:]) == {
        "tb_dlprof_plugin.cli",
        "tb_dlprof_plugin.cli.commands",
        "tb_dlprof_plugin.cli.dlprof_aliases",
        "tb_dlprof_plugin.cli.main",
        "tb_dlprof_plugin.cli.terminal",
        "tb_dlprof_plugin.model",
        "tb_dlprof_plugin.model.lazy_imports",
        "tb_dlprof_plugin.model.visible",
        "tb_dlprof_plugin.version",
    }
