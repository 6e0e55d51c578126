"""``lab/compiled/record.py``: its cases, its packing and a tiny model on the CPU."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
from compiled import pairs, pairs_report, record, variants

SCRIPT = Path(record.__file__)


def test_the_most_telling_cases_come_first_and_each_once():
    cases = record.cases()
    assert len(cases) == len(set(cases)) == 4 + 2 + len(record.PLANTED) + 6 * (1 + 6)
    assert cases[:4] == ["start.cold.off", "start.cold.on", "start.warm.off", "start.warm.on"]


def test_files_are_packed_below_the_limit_without_caches(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "LARGEST_TAR", 30_000)
    for name in ("a/log.txt", "a/run/trace.json.gz", "b/log.txt", "cache/x/kernel.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 12_000)
    record.pack(tmp_path)
    members = []
    for archive in sorted(tmp_path.glob("files_*.tar")):
        with tarfile.open(archive) as opened:
            members.append(opened.getnames())
    assert members == [["a/log.txt", "a/run/trace.json.gz"], ["b/log.txt"]]


@pytest.mark.parametrize("families", [pairs.FAMILIES, pairs.TINY])
def test_each_fault_is_timed_next_to_the_variant_without_it(families):
    for family, text in families.items():
        names = text.split()
        assert names[0] == "default"
        assert {pairs_report.WITHOUT[name] for name in names if name in pairs_report.WITHOUT} <= set(names)
        assert variants.PLANTED.keys() - {"guard"} <= pairs_report.WITHOUT.keys()
        assert family.endswith((".training", ".inference"))


def test_a_process_that_ends_without_a_word_is_said_with_its_signal(tmp_path, monkeypatch):
    script = tmp_path / "ends.py"
    script.write_text("import sys, ctypes\nprint('begins', file=sys.stderr, flush=True)\nctypes.string_at(0)\n")
    monkeypatch.setattr(pairs, "__file__", str(script))
    process = pairs.Process("mlp.training", "default", tmp_path, True)
    with pytest.raises(TimeoutError, match="SIGSEGV"):
        process.ask("time", time.monotonic() + 30)
    text = process.how_it_ended()
    assert text.startswith("it was ended by SIGSEGV: ")
    assert "string_at" in text
    assert record.how_it_ended(None, tmp_path / "none") == "it was stopped when the time was over"


@pytest.mark.long
def test_a_tiny_model_is_recorded_on_the_cpu(tmp_path):
    command = [sys.executable, str(SCRIPT), "record", "--out", str(tmp_path), "--tiny", "--only", "gpt"]
    done = subprocess.run([*command, "--seconds", "900"], capture_output=True, text=True, timeout=1000, check=True)
    result = json.loads((tmp_path / "gpt.default.training" / "result.json").read_text())
    assert result["gpu"] == "none"
    row = next(line.split() for line in done.stdout.splitlines() if line.startswith("gpt.default.training"))
    # Shares of one module, of several, without a module, unknown.
    assert sum(float(text) for text in row[2:6]) == pytest.approx(100, abs=0.3)


@pytest.mark.long
def test_a_tiny_pair_is_timed_in_turns_and_recorded_each_in_its_process(tmp_path):
    command = [sys.executable, pairs.__file__, "record", "--out", str(tmp_path), "--tiny", "--only", "mlp.training"]
    done = subprocess.run([*command, "--seconds", "900"], capture_output=True, text=True, timeout=1000, check=True)
    assert "missing" not in done.stdout
    shown = subprocess.run(
        [sys.executable, pairs.__file__, "report", str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout
    rows = {line.split()[1]: line for line in shown.splitlines() if line.startswith("mlp.training")}
    assert set(rows) == set(pairs.TINY["mlp.training"].split())
    # Each fault is in the recording of its own process alone.
    assert [name for name, row in rows.items() if "graph_break" in row] == ["cuts"]
    assert [name for name, row in rows.items() if "recompiles" in row] == ["guard"]
    result = json.loads((tmp_path / "mlp.training" / "guard" / "result.json").read_text())
    assert result["compiled_while_recorded"] == 1
    assert len(result["turns_ms"]) == pairs.TURNS
