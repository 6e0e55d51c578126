"""The fixture `dlprof`: measures a step of a test against that of another commit, or against a baseline in a file."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from tb_dlprof_plugin.model.regression import RegressionVerdict, judge
from tb_dlprof_plugin.pytest_plugin import BASELINE, VERDICT
from tb_dlprof_plugin.pytest_plugin.base_checkout import BaseError, Checkout, check_out
from tb_dlprof_plugin.pytest_plugin.measuring import StepMeasuring
from tb_dlprof_plugin.pytest_plugin.serving import asked, serve
from tb_dlprof_plugin.pytest_plugin.step_process import Side
from tb_dlprof_plugin.trial.variant import VariantError

_CHECKOUTS = pytest.StashKey[dict[str, Checkout]]()
WORKING_TREE = "the working tree"


class StepTest:
    """Of one test.

    Args:
        item: the test.
        cleanup: is closed at the end of the session.
    """

    def __init__(self, item: pytest.Function, cleanup: contextlib.ExitStack) -> None:
        self._item, self._cleanup, self._calls = item, cleanup, 0

    def not_slower(
        self,
        step: Callable[[], object],
        *,
        than: str = "main",
        percent: float = 5.0,
        seconds: float = 20.0,
        batch: int | None = None,
    ) -> RegressionVerdict:
        """Fail the test where a step takes longer than the base's by more than ``percent``; skip it where nothing can
        be said, or fail with `--dlprof-fail-if-unsure`.

        Both steps run in processes of their own, which take turns. Both run this test; what it imports comes from the
        working tree on one side, from the base on the other.

        Args:
            step: runs one step. A GPU that torch uses is waited for.
            than: a branch, tag or commit; or a file that ends in .json, whose steps `--dlprof-update-baselines` adds.
            percent: by how much a step may take longer.
            seconds: for the measurement of one pair of processes.
            batch: samples of a step; a baseline in a file counts for the same batch alone.
        """
        __tracebackhide__ = True
        call, self._calls = self._calls, self._calls + 1
        request = asked()
        if request is not None:
            if call == request.call:
                serve(step, request)
            return judge(percent, "step", None, None, None, "it is not measured in this process")
        if sys.platform == "win32":
            pytest.skip("dlprof freezes one process while another one runs, which Windows does not")
        config = self._item.config
        try:
            if config.option.dlprof_power:
                self._measure_power(call, percent, seconds, config.option.dlprof_power)
            if than.endswith(".json"):
                found, facts = self._against_file(call, Path(config.rootpath, than), percent, seconds, batch)
            else:
                found, facts = self._against_commit(call, than, percent, seconds)
        except (BaseError, VariantError) as error:
            pytest.fail(f"dlprof: {error}", pytrace=False)
        told = {"test": self._name(call), "sentence": found.sentence, **msgspec.to_builtins(found), **facts}
        self._item.user_properties.append((VERDICT, json.dumps(told)))
        if found.verdict == "slower" or (found.verdict == "cannot_say" and config.option.dlprof_fail_if_unsure):
            pytest.fail(found.sentence, pytrace=False)
        if found.verdict == "cannot_say":
            pytest.skip(found.sentence)
        return found

    def _against_commit(
        self, call: int, ref: str, percent: float, seconds: float
    ) -> tuple[RegressionVerdict, dict[str, object]]:
        checkouts = self._item.config.stash.setdefault(_CHECKOUTS, {})
        if ref not in checkouts:
            checkouts[ref] = check_out(ref, self._item.config.rootpath)
            self._cleanup.callback(checkouts[ref].remove)
        checkout = checkouts[ref]
        checkout.with_test(self._item.path.resolve(), self._item.config.rootpath.resolve())
        base = self._side(call, checkout.root, checkout)
        measuring = StepMeasuring(base, self._side(call, checkout.root), percent, seconds)
        found = measuring.verdict()
        facts = {"base": ref, "commit": checkout.commit, **measuring.figures()}
        return found, facts

    def _against_file(
        self, call: int, path: Path, percent: float, seconds: float, batch: int | None
    ) -> tuple[RegressionVerdict, dict[str, object]]:
        from tb_dlprof_plugin.pytest_plugin.baselines import Baseline, verdict_by_file
        from tb_dlprof_plugin.pytest_plugin.measuring import step_alone

        step_ms, facts = step_alone(self._side(call, self._item.config.rootpath.resolve()), seconds)
        measured = Baseline(self._name(call), facts.device, facts.driver, facts.torch, batch, [step_ms])
        if self._item.config.option.dlprof_update_baselines:
            told = {"file": str(path), **msgspec.to_builtins(measured)}
            self._item.user_properties.append((BASELINE, json.dumps(told)))
        return verdict_by_file(path, measured, percent), {"base": str(path), "candidate_ms": step_ms}

    def _measure_power(self, call: int, percent: float, seconds: float, runs: int) -> None:
        from tb_dlprof_plugin.pytest_plugin.measuring import against_itself

        side = self._side(call, self._item.config.rootpath.resolve())
        found = against_itself(side, seconds, runs)
        told = {
            "test": self._name(call),
            "sentence": f"{runs} runs of the step against itself",
            "limit_percent": percent,
        }
        self._item.user_properties.append((VERDICT, json.dumps({**told, "seconds": seconds, **found})))
        pytest.skip("its step was measured against itself")

    def _name(self, call: int) -> str:
        return self._item.nodeid + (f" ({call + 1})" if call else "")

    def _side(self, call: int, root: Path, checkout: Checkout | None = None) -> Side:
        config = self._item.config
        folder = config.rootpath.resolve()
        places = [path for path in _on_path() if path.is_relative_to(root) and not path.is_relative_to(sys.prefix)]
        if checkout is not None:
            places += [path for path in _homes_of_packages(root) if path not in places]
            places = [checkout.place_of(path) for path in places]
            folder = checkout.place_of(folder)
        return Side(
            name=WORKING_TREE if checkout is None else f"the base ({checkout.commit[:9]})",
            folder=folder,
            path=[*places, *(path for path in _on_python_path() if not path.is_relative_to(root))],
            test=self._item.nodeid,
            call=call,
            root=root,
            test_file=self._item.path.resolve(),
            import_mode=str(config.getoption("importmode")),
        )


def _on_path() -> list[Path]:
    return [Path(one).resolve() for one in sys.path if one and Path(one).is_dir()]


def _on_python_path() -> list[Path]:
    return [Path(one).resolve() for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one]


def _homes_of_packages(root: Path) -> list[Path]:
    """Folders of the working tree from which packages came without being on the path, as editable installs do it."""
    found: dict[Path, None] = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if "." in name or not isinstance(file, str):
            continue
        path = Path(file).resolve()
        home = path.parent.parent if path.name == "__init__.py" else path.parent
        if home.is_relative_to(root) and not home.is_relative_to(sys.prefix):
            found[home] = None
    return list(found)
