"""The verdicts against an H200's counters of matrix instructions, on the recordings kept in ``oracle/``."""

from __future__ import annotations

from pathlib import Path

import pytest
from tensor_core_oracle.__main__ import main
from tensor_core_oracle.counters import DMMA, DURATION, HFMA2, HMMA, IMMA, CountedLaunch, demangled, read_counts
from tensor_core_oracle.launches import ProfiledLaunch
from tensor_core_oracle.match import _difference, _shared
from tensor_core_oracle.result import COMMITTED, HOLD_OUT, KEPT, Result, Row, Workload, read, write
from tensor_core_oracle.rule_sets import by_list, ours
from tensor_core_oracle.score import on_tensor_cores, our_verdict, precision_answers, score, share, true_precisions

from tb_dlprof_plugin.names.kernel_rules import RULES, VERIFIED

UNKNOWN_AT_MOST = 0.02
SHARE_TOLERANCE_PERCENT = 1.0


@pytest.fixture(scope="module", params=KEPT, ids=["settled-on", "hold-out", "more-models"])
def result(request: pytest.FixtureRequest) -> Result:
    return read(request.param)


def test_no_verdict_contradicts_the_counters(result: Result) -> None:
    scores = score(result, our_verdict(result))
    assert [(outcome, row.op, row.name) for outcome, row in scores.rows if outcome != "unknown"] == []
    assert scores.total.unknown_share <= UNKNOWN_AT_MOST


def test_no_named_precision_contradicts_the_workload(result: Result) -> None:
    right, unknown, wrong = precision_answers(result)
    assert [(answer, row.op, row.name) for answer, row in wrong] == []
    assert unknown <= UNKNOWN_AT_MOST * right


def test_the_share_of_a_step_on_tensor_cores_is_the_counters(result: Result) -> None:
    for step in result.steps:
        counted, said = share(result, step, on_tensor_cores), share(result, step, our_verdict(result))
        assert said == pytest.approx(counted, abs=SHARE_TOLERANCE_PERCENT), result.workloads[step.workload].name


def test_the_recording_holds_every_family_and_precision() -> None:
    result = read(COMMITTED)
    verdicts = [ours(row, result.machine.compute_capability) for row in result.rows]
    used = {(verdict.kind, verdict.precision) for verdict in verdicts if verdict.tensor_core}
    assert {precision for _, precision in used} >= {"fp16", "bf16", "tf32", "3xtf32", "fp8", "int8", "fp64"}
    assert {kind for kind, _ in used} == {"gemm", "convolution", "attention", "rnn"}
    assert len(result.steps) >= 60
    assert len({row.name for row in result.rows}) > 2000


def test_the_names_that_the_rules_were_not_settled_on_are_answered_too() -> None:
    seen = {row.name for row in read(COMMITTED).rows}
    result = read(HOLD_OUT)
    new = score(result, our_verdict(result), lambda row: row.name not in seen)
    assert new.total.kernels > 150
    assert (new.total.wrong, new.total.unknown) == (0, 0)


def test_rules_are_called_verified_where_they_decided_a_counted_kernel() -> None:
    decided = set()
    for path in KEPT:
        recording = read(path)
        for row in recording.rows:
            verdict = ours(row, recording.machine.compute_capability)
            if verdict.tensor_core is not None:
                decided.add(verdict.rule.split("+")[0])
        assert f"{recording.machine.gpu}, {recording.machine.date}" in VERIFIED
    assert decided == VERIFIED["NVIDIA H200, 2026-11-21"]
    assert {rule.id for rule in RULES if rule.verified} == decided


def test_the_list_of_other_profilers_is_wrong_both_ways_on_this_gpu() -> None:
    scores = score(read(COMMITTED), by_list)
    assert scores.total.missed > scores.total.found
    assert scores.total.false > 0


def _row(op: str, types: str, tf32: bool = False) -> Row:
    return Row("kernel", op, types, tf32, [0], 1, 1, 1, 0, 0, 1)


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (_row("aten::mm", '["c10::Half", "c10::Half"]'), {"fp16"}),
        (_row("aten::mm", '["float", "float"]', tf32=True), {"tf32"}),
        (_row("aten::mm", '["float", "float"]'), {"3xtf32"}),
        (_row("aten::_efficient_attention_forward", '["float"]', tf32=True), {"3xtf32"}),
        (_row("aten::cudnn_convolution", '["c10::BFloat16"]'), {"bf16", "tf32"}),
        (_row("aten::_scaled_mm", '["c10::Float8_e4m3fn"]'), {"fp8"}),
        (_row("", ""), set()),
    ],
)
def test_the_inputs_and_the_tf32_switch_say_what_a_kernel_computed_in(row: Row, expected: set[str]) -> None:
    assert true_precisions(row) == expected


def _result(*rows: Row) -> Result:
    return Result(read(HOLD_OUT).machine, [Workload("one", "group", False)], list(rows), [], {})


def test_a_name_answered_wrongly_in_one_context_is_wrong_and_one_without_answer_is_not_found() -> None:
    half, single = _row("aten::mm", '["c10::Half"]'), _row("aten::mm", '["float"]')
    answers: dict[str, bool | None] = {half.input_types: True, single.input_types: False}
    scores = score(_result(half, single), lambda row: answers[row.input_types])
    assert (scores.total.kernels, scores.total.missed) == (1, 1)
    answers[single.input_types] = None
    scores = score(_result(half, single), lambda row: answers[row.input_types])
    assert (scores.total.missed, scores.total.unknown, scores.total.recall) == (0, 1, 0.0)


def _csv(*rows: tuple[str, ...]) -> list[str]:
    header = ("ID", "Kernel Name", HMMA, HFMA2, IMMA, DMMA, DURATION)
    units = ("", "", "inst", "inst", "inst", "inst", "ns")
    return ["==PROF== Connected", *(",".join(f'"{cell}"' for cell in row) for row in (header, units, *rows))]


def test_moves_of_halves_are_not_matrix_work() -> None:
    moved, multiplied = read_counts(
        _csv(("0", "_ZN2at4moveEPf", "640", "640", "0", "0", "1000"), ("1", "nvjet", "2,000", "8", "0", "3", "5"))
    )
    assert moved == CountedLaunch("at::move(float*)", 0, 0, 0, 1000)
    assert (multiplied.hmma, multiplied.dmma, multiplied.matrix_instructions) == (1992, 3, 1995)


def test_a_name_that_is_not_mangled_stays() -> None:
    assert demangled("nvjet_sm90_hsh_64x64_TNN") == "nvjet_sm90_hsh_64x64_TNN"


def _shown(name: str, op: str = "aten::mm") -> ProfiledLaunch:
    return ProfiledLaunch(name, op, "", 10)


def test_runs_that_launched_other_kernels_keep_only_what_both_launched_in_one_context() -> None:
    shown = [_shown("a"), _shown("b"), _shown("c", "aten::add"), _shown("c", "aten::mul")]
    counted = [CountedLaunch(name, 1, 0, 0, 5) for name in ("b", "a", "c", "d")]
    assert _difference(shown, counted) == "launch 0 is a in one and b in the other"
    assert _difference(shown[:1], counted[1:2]) == ""
    assert _difference(shown, None) == "not counted"
    assert [(one.name, other.name) for one, other in _shared(shown, counted)] == [("b", "b"), ("a", "a")]


def test_a_result_written_is_the_result_read(tmp_path: Path, result: Result) -> None:
    write(result, tmp_path / "again.json.gz")
    assert read(tmp_path / "again.json.gz") == result


def test_the_score_command_prints_the_figures_and_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["score"]) == 0
    printed = capsys.readouterr().out
    assert "names not in the first recording" in printed
    assert "demo/resnet50" in printed
