"""``tb-dlprof advise``: what it prints, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.advice.finding import Reading
from tb_dlprof_plugin.advice.rule_text import thresholds_of
from tb_dlprof_plugin.cli import advice_text
from tb_dlprof_plugin.cli.main import app
from tb_dlprof_plugin.cli.visible_console import console
from tb_dlprof_plugin.pages.advice import AdvicePage, advice_page
from tb_dlprof_plugin.profile_view import ProfileView
from tb_dlprof_plugin.reports.advice import advice_report
from tb_dlprof_plugin.store.event_file import write_profile
from tb_dlprof_plugin.store.logdir import read_profiles
from tb_dlprof_plugin.store.run_ref import RunRef

Advise = Callable[..., Result]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, training) -> Path:
    """A run with a finding of high severity and one of medium."""
    folder = tmp_path_factory.mktemp("advise") / "fp32"
    write_profile(folder, training("fp32").profile(session="s"))
    return folder


@pytest.fixture(scope="module")
def page(source: Path) -> AdvicePage:
    (stored,) = read_profiles(source)
    view = ProfileView(stored.profile)
    return advice_page(view, RunRef("fp32", "s", 0, 0), view.selection())


@pytest.fixture
def advise(source: Path) -> Advise:
    return lambda *args: CliRunner().invoke(app, ["advise", str(source), *map(str, args)])


def test_the_other_ranks_of_the_same_session_are_looked_at_too(tmp_path: Path, training) -> None:
    for rank in range(2):
        write_profile(tmp_path, training("fp16").profile(session="s", rank=rank))
    write_profile(tmp_path, training("fp16").profile(session="earlier", rank=2))
    result = CliRunner().invoke(app, ["advise", str(tmp_path), "--rank", "1", "--json"])
    (rule,) = [rule for rule in json.loads(result.stdout)["rules"] if rule["rule"] == "imbalanced_gpu"]
    assert rule["outcome"] == "silent"
    assert "rank 0 works" in rule["why"]


def test_the_price_comes_first_and_what_was_seen_the_change_and_its_code_follow(
    advise: Advise, page: AdvicePage
) -> None:
    result = advise()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[1] == page.headline
    for number, finding in enumerate(page.findings, 1):
        start = next(i for i, line in enumerate(lines) if line.startswith(f"{number}  "))
        assert finding.rule in lines[start]
        assert f"[{finding.severity}, confidence {finding.confidence}]" in lines[start]
        assert lines[start + 1].strip() == finding.title
        assert lines[start + 2].strip() == f"seen     {finding.seen}"
        assert lines[start + 3].strip() == f"change   {finding.change}"
        code = [line.strip() for line in finding.code.splitlines() if line.strip()]
        assert [line.strip() for line in lines[start + 4 : start + 4 + len(code)]] == code
    assert "\x1b" not in result.stdout
    assert "leave" not in result.stdout


def test_verbose_adds_evidence_derivation_and_the_silent_rules(advise: Advise, page: AdvicePage) -> None:
    shown = advise("--verbose").stdout
    finding = page.findings[0]
    assert finding.saving is not None
    assert finding.saving.derivation in shown
    assert f"- {finding.readings[0].label}: " in shown
    assert finding.evidence[0].label in shown
    assert "What mixed precision would gain" in shown
    for line in page.rules:
        if line.outcome != "fired":
            assert line.why in shown


def test_a_saving_that_is_not_known_says_why(page: AdvicePage, capsys: pytest.CaptureFixture[str]) -> None:
    unknown = msgspec.structs.replace(page.findings[0], saving=None, saving_unknown_because="It depends.")
    advice_text.print_advice(msgspec.structs.replace(page, findings=[unknown]), verbose=False)
    shown = capsys.readouterr().out
    assert "saving unknown" in shown
    assert "saving   It depends." in shown


@pytest.mark.parametrize(
    ("unit", "value", "threshold", "text"),
    [
        ("ns", 1_500_000, 2000, "1.50 ms (threshold 2.00 µs)"),
        ("percent", 12.34, 5.0, "12.3 % (threshold 5.0 %)"),
        ("bytes", 1536, 1 << 30, "1.50 KiB (threshold 1.00 GiB)"),
        ("ratio", 2 / 3, 0.5, "0.67 (threshold 0.50)"),
        ("count", 12_345, 8, "12,345 (threshold 8)"),
        ("count", 2.5, None, "2.5"),
        ("bytes", None, None, "unknown"),
    ],
)
def test_readings_are_printed_in_their_unit(
    page: AdvicePage,
    capsys: pytest.CaptureFixture[str],
    unit: Any,
    value: float | None,
    threshold: float | None,
    text: str,
) -> None:
    finding = msgspec.structs.replace(page.findings[0], readings=[Reading("Figure", value, unit, threshold)])
    advice_text.print_advice(msgspec.structs.replace(page, findings=[finding]), verbose=True)
    assert f" - Figure: {text}\n" in capsys.readouterr().out


def test_a_terminal_gets_colours_and_its_width_but_not_under_no_color(
    page: AdvicePage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def on_terminal() -> str:
        out = io.StringIO()
        monkeypatch.setattr(
            advice_text,
            "console",
            lambda _, **options: console(60, file=out, force_terminal=True, **options),
        )
        advice_text.print_advice(page, verbose=False)
        return out.getvalue()

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;32msaves " in on_terminal()
    monkeypatch.setenv("NO_COLOR", "1")
    plain = on_terminal()
    assert "\x1b" not in plain
    headline = plain.splitlines()[1 : plain.splitlines().index("")]
    assert " ".join(headline) == page.headline
    assert max(map(len, headline)) <= 60
    assert not any(line.startswith("%") for line in headline)


def test_json_has_an_entry_for_each_finding_and_each_rule(advise: Advise, page: AdvicePage) -> None:
    report = json.loads(advise("--format", "json").stdout)
    assert report == json.loads(msgspec.json.encode(advice_report(page)))
    entry, finding = report["findings"][0], page.findings[0]
    assert finding.saving is not None
    assert page.combined is not None
    assert (entry["rule"], entry["saving_ms"]) == (finding.rule, pytest.approx(finding.saving.expected_ns / 1e6))
    assert report["combined"]["saving_ms"] == pytest.approx(page.combined.expected_ns / 1e6)


@pytest.mark.parametrize("limit", ["high", "medium", "low"])
def test_it_ends_with_1_where_a_finding_is_as_severe_as_the_limit(advise: Advise, page: AdvicePage, limit: str) -> None:
    order = ("high", "medium", "low")
    severe = [f.rule for f in page.findings if order.index(f.severity) <= order.index(limit)]
    result = advise("--format", "json", "--fail-on", limit)
    assert result.exit_code == (1 if severe else 0)
    assert len(json.loads(result.stdout)["findings"]) == len(page.findings)
    assert all(rule in result.stderr for rule in severe)
    ignored = advise("--fail-on", limit, "--ignore", ",".join(severe))
    assert (ignored.exit_code, ignored.stderr) == (0, "")


def test_an_ignored_finding_is_neither_shown_nor_counted(advise: Advise, page: AdvicePage) -> None:
    first = page.findings[0]
    report = json.loads(advise("--format", "json", "--ignore", first.rule).stdout)
    assert [entry["rule"] for entry in report["findings"]] == [f.rule for f in page.findings[1:]]
    assert "1 more is set aside." in report["headline"]
    assert report["combined"]["findings"] == len([f for f in page.findings[1:] if f.saving])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--ignore", "tf32_off,amp_not_user"), "amp_not_user; did you mean amp_not_used"),
        (("--ignore", "tf32_off,zzz"), "zzz; --verbose names all rules."),
        (("--rule", "tf32_of"), "tf32_of; did you mean tf32_off?\n"),
    ],
)
def test_a_rule_that_does_not_exist_is_refused(advise: Advise, options: tuple[str, str], words: str) -> None:
    result = advise(*options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"tb-dlprof: there is no rule {words}" in result.stderr


def test_its_former_name_still_works_and_is_not_listed(source: Path, advise: Advise) -> None:
    former = CliRunner().invoke(app, ["advice", str(source), "--json"])
    assert former.stdout == advise("--json").stdout
    assert "  advice " not in CliRunner().invoke(app, ["--help"]).stdout


def test_what_a_rule_says_of_itself_needs_no_run() -> None:
    result = CliRunner().invoke(app, ["advise", "--rule", "tf32_off"])
    assert (result.exit_code, result.stderr) == (0, "")
    (known,) = (one.rule for one in all_rules() if one.rule.id == "tf32_off")
    assert result.stdout.startswith(f"# {known.title}\n\nRule `tf32_off`.")
    for text in (known.looks_for, known.why, known.fix, known.ignore_when, known.references[0].url):
        assert text in result.stdout
    for name in thresholds_of(known):
        assert f"| `{name}` | " in result.stdout
    assert "Step times of one run vary by about this much" in result.stdout, "where a threshold comes from"
