"""What was timed of each variant of `pairs`, and what the advice says of its recording."""

from __future__ import annotations

import json
import math
import statistics
from pathlib import Path
from typing import Any

WITHOUT = dict.fromkeys(("item", "cuts", "breaks", "dynamic", "guard", "eager"), "default")
WITHOUT |= dict.fromkeys(("mutated", "cpu_tensor"), "graphs") | {"blocks": "whole"}
"""By variant the one without the fault."""
RULES = {"item": "graph_break", "cuts": "graph_break", "breaks": "graph_break", "mutated": "cudagraphs_skipped",
         "cpu_tensor": "cudagraphs_skipped", "dynamic": "dynamic_shapes", "guard": "recompiles",
         "blocks": "regional_compilation"}  # fmt: skip


def report(out: Path, only: list[str], advised: bool = True) -> None:
    """Print what was timed, and what advice says of each recording, which takes its time."""
    found: dict[tuple[str, str], tuple[dict[str, Any], Path]] = {}
    for file in sorted(out.glob("*/*/result.json")):
        one = json.loads(file.read_text())
        if not only or one["family"] in only:
            found[one["family"], one["variant"]] = (one, file.parent)
    if found:
        first = next(iter(found.values()))[0]
        print(f"torch {first['torch']}, {first['gpu']}")
    for (family, variant), (one, folder) in found.items():
        turns = one.get("turns_ms") or []
        if not turns:
            continue
        middle = statistics.median(turns)
        line = f"{family:20s} {variant:10s} {middle:8.3f} ms [{min(turns):.3f} to {max(turns):.3f}]"
        line += f"  start {one['start_s']:.0f} s, CPU {one['start_cpu_s']:.0f} s"
        line += f"  compiled while recorded {one.get('compiled_while_recorded')}"
        if advised:
            line += f"  {said_of(folder / 'run', variant)}"
        without = found.get((family, WITHOUT.get(variant, "")))
        if without is not None and (base := without[0].get("turns_ms")):
            saved = [one - other for one, other in zip(turns, base, strict=False)]
            line += f"  | without it {statistics.median(saved):+.3f} ms [{min(saved):.3f} to {max(saved):.3f}]"
        print(line)
    if (out / "missing.json").is_file():
        for case, why in json.loads((out / "missing.json").read_text()).items():
            print(f"missing: {case}: {why}")


def said_of(run: Path, variant: str) -> str:
    """The step of a recording (ms), and what it would be without the fault or, of an eager run, compiled; with what
    that saves."""
    found = savings_of(run, variant)
    if found is None:
        return "no recording"
    step, savings = found
    text = f"step {step / 1e6:.3f} ms"
    for name, saving in savings.items():
        if saving is None or isinstance(saving, str):
            text += f", {name}: unknown"
            continue
        ends = saving.low_ns, saving.expected_ns, saving.high_ns
        low, middle, high = ((step - ns) / 1e6 for ns in reversed(ends))
        text += f", {name}: {middle:.3f} [{low:.3f} to {high:.3f}], saves {ends[1] / 1e6:.3f}"
        text += f" [{ends[0] / 1e6:.3f} to {ends[2] / 1e6:.3f}]"
    return text


def savings_of(run: Path, variant: str) -> tuple[float, dict[str, Any]] | None:
    """The step of a recording (ns), and the savings that advice has for the variant, by name; None without one."""
    from tb_dlprof_plugin.advice.compile_saving import compile_saving
    from tb_dlprof_plugin.advice.engine import advise
    from tb_dlprof_plugin.advice.rule_context import RuleContext
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.simulation.estimate import step_estimate
    from tb_dlprof_plugin.store.logdir import read_profiles

    for events in run.glob("*.tb_dlprof"):
        view = ProfileView(read_profiles(events)[0].profile)
        savings: dict[str, Any] = {}
        if variant == "eager":
            context = RuleContext(view, view.selection())
            savings = {"default": compile_saving(context, False), "graphs": compile_saving(context, True)}
        if rule := RULES.get(variant, "launch_bound" if variant == "eager" else ""):
            found = advise(view, view.selection()).findings
            savings |= {one.rule: one.saving for one in found if one.rule == rule}
        return step_estimate(view, view.selection()).ns, savings
    return None


def prices(recordings: Path, turns: Path, without: dict[str, str]) -> None:
    """Print what removing each fault saves (percent of the step), by the advice and as timed in turns.

    Args:
        recordings: of `pairs record`.
        turns: of `pairs together`.
        without: by variant the one that it is held to.
    """
    for file in sorted(turns.glob("*/turns.json")):
        family, timed = file.parent.name, json.loads(file.read_text())
        for variant, own in timed.items():
            for other in ("default", "graphs") if variant == "eager" else (without.get(variant, ""),):
                if other not in timed or variant in ("default", "graphs"):
                    continue
                each = sorted(100 * (1 - base / one) for one, base in zip(own, timed[other], strict=True))
                low, middle, high = (each[len(each) * part // 4] for part in (1, 2, 3))
                line = f"{family:20s} {variant:8s} to {other:8s} timed {middle:6.1f} % [{low:.1f} to {high:.1f}]"
                found = savings_of(recordings / family / variant / "run", variant)
                if found is None:
                    print(f"{line}  no recording")
                    continue
                step, savings = found
                for name, saving in savings.items():
                    if variant == "eager" and name not in (other, "launch_bound" if other == "graphs" else ""):
                        continue
                    if saving is None or isinstance(saving, str):
                        line += f"  {name}: unknown"
                        continue
                    ends = [100 * ns / step for ns in (saving.low_ns, saving.expected_ns, saving.high_ns)]
                    line += f"  {name} {ends[1]:.1f} % [{ends[0]:.1f} to {ends[2]:.1f}]"
                    line += " true" if ends[0] <= middle <= ends[2] else " (!)"
                print(line)


def flops(out: Path) -> None:
    """Print in how many modules and passes products and convolutions of each variant have the eager run's FLOPs."""
    for eager in sorted(out.glob("*/eager/run")):
        family = eager.parents[1]
        known = _flops_of(eager)
        for variant in ("default", "graphs", "hand", "graphed"):
            if (run := family / variant / "run").is_dir():
                # The first recording has the capture.
                early = run.parent / "early"
                found = _flops_of(early if early.is_dir() else run)
                equal = sum(math.isclose(found.get(part, -1.0), value, rel_tol=1e-6) for part, value in known.items())
                print(f"{family.name:20s} {variant:10s} {equal} of {len(known)}")


def _flops_of(recording: Path) -> dict[tuple[str, bool], float]:
    """FLOPs of the last step by module and whether it is the backward pass; NaN where those of a call are unknown."""
    from tb_dlprof_plugin.analysis import analyze_trace
    from tb_dlprof_plugin.metrics.flops import matrix_calls
    from tb_dlprof_plugin.model.profile import Role
    from tb_dlprof_plugin.profile_view import ProfileView
    from tb_dlprof_plugin.store.logdir import read_profiles

    if recording.name == "early":
        # Of this package, not of the one that recorded.
        profile = analyze_trace(max(recording.glob("*.pt.trace.json.gz"), key=lambda path: path.stat().st_size))
    else:
        profile = read_profiles(max(recording.glob("*.tb_dlprof")))[0].profile
    view = ProfileView(profile)
    last = view.selection().last
    ops, strings, found = view.profile.ops, view.profile.strings, matrix_calls(view, view.selection(last, last))
    sums: dict[tuple[str, bool], float] = {}
    for op, work in zip(view.profile.calls.op[found.call].tolist(), found.flops.tolist(), strict=True):
        if module := strings[ops.module[op]]:
            part = (module, bool(ops.role[op] == Role.BACKWARD))
            sums[part] = sums.get(part, 0.0) + (work if work >= 0 else math.nan)
    return sums
