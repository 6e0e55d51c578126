"""Whole training scripts, unchanged: iterations and module names are found, and the training is what it is without.

The scripts are those of ``lab/run_scripts``, on one thread of the CPU, where a training repeats itself bit by
bit.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from support.marks import short_of  # noqa: E402
from support.script_runs import SCRIPTS, Done, execute, modules, numbers, profiles, run  # noqa: E402

from models import MODELS  # noqa: E402
from tb_dlprof_plugin.advice import advise  # noqa: E402
from tb_dlprof_plugin.profile_view import ProfileView  # noqa: E402

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """A script, and what its profile must say."""

    script: str
    model: str
    batch_size: int
    iterations: list[int]
    modules: set[str]
    arguments: tuple[object, ...] = ()
    options: tuple[object, ...] = ()
    needs: str = "torch"


def demo(name: str, model: str) -> Case:
    """One of the six models for a few steps: on one thread a step of the larger ones takes seconds."""
    spec = MODELS[name]
    built = spec.build(spec.quick.image_shape, spec.num_classes)
    return Case(
        "six_models.py", model, spec.quick.batch_size, [2, 3],
        {path for path, module in built.named_modules() if list(module.parameters(recurse=False))},
        ("--model", name, "--steps", 5), ("--iter-start", 2, "--iter-stop", 3),
    )  # fmt: skip


DEMO = {
    "mlp": "MLP", "lenet": "LeNet5", "alexnet": "AlexNet", "vgg16": "VGG16", "resnet50": "ResNet50",
    "custom": "ConvTransformer",
}  # fmt: skip
PUBLIC = {
    # Of two epochs of 18 batches, the evaluation after the first ends the recording.
    "imagenet": Case(
        "imagenet.py", "ResNet", 8, list(range(12, 18)), {"conv1", "layer3.downsample.0", "layer4.bn2", "fc"},
        ("--batches", 18),
    ),
    "lightning": Case(
        "lightning_module.py", "Classifier", 16, list(range(12, 19)), {"features.0", "features.3", "head", "loss"},
        ("--batches", 19), needs="lightning",
    ),
    "accelerate": Case(
        "accelerate_loop.py", "TinyBert", 8, list(range(12, 22)),
        {"embeddings", "encoder.layers.1.linear2", "classifier"}, needs="accelerate",
    ),
    "transformers": Case(
        "transformers_trainer.py", "BertForSequenceClassification", 8, list(range(12, 22)),
        {"classifier", "bert.embeddings.word_embeddings"}, needs="transformers",
    ),
    "gan": Case(
        "gan.py", "Generator + Discriminator", 16, list(range(12, 22)), {"Generator.main.0", "Discriminator.conv"}
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Ran:
    """A case that was run without and with ``tb-dlprof run``."""

    case: Case
    folder: Path
    plain: Done
    profiled: Done

    @property
    def profile(self) -> Any:
        """The only one."""
        (found,) = profiles(self.folder / "runs" / "r")
        return found


SHORT = {"imagenet"}
"""The other models and libraries are for ``make test-all``."""


INSTALLED = [name for name in (*DEMO, *PUBLIC) if name in DEMO or importlib.util.find_spec(PUBLIC[name].needs)]


@pytest.fixture(scope="module", params=short_of(INSTALLED, SHORT))
def ran(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Both runs."""
    name = request.param
    case = demo(name, DEMO[name]) if name in DEMO else PUBLIC[name]
    folder = tmp_path_factory.mktemp(name)
    command = (SCRIPTS / case.script, *case.arguments, "--save")
    plain = execute(sys.executable, *command, "plain.pt", cwd=folder)
    assert plain.status == 0, plain.err
    profiled = run(
        "--verbosity", "quiet", "--run-name", "r", *case.options, *command, "profiled.pt", cwd=folder
    )  # fmt: skip
    return Ran(case, folder, plain, profiled)


def test_what_it_writes_and_its_status_are_the_same(ran: Ran) -> None:
    assert ran.profiled == ran.plain


def test_its_weights_are_the_same_to_the_bit(ran: Ran) -> None:
    plain, profiled = (torch.load(ran.folder / name) for name in ("plain.pt", "profiled.pt"))
    assert plain.keys() == profiled.keys()
    assert all(torch.equal(plain[name], profiled[name]) for name in plain)


def test_its_iterations_are_found(ran: Ran) -> None:
    assert ran.profile.iterations.found_by == "profiler_step"
    assert numbers(ran.profile) == ran.case.iterations


def test_its_modules_are_named(ran: Ran) -> None:
    assert ran.profile.facts.model == ran.case.model
    assert ran.profile.facts.module_ranges is True
    # Parameters of the model itself, as of the position, belong to the path "".
    assert ran.case.modules - {""} <= modules(ran.profile)


def test_its_facts_are_known(ran: Ran) -> None:
    facts = ran.profile.facts
    assert facts.batch_size == ran.case.batch_size
    assert facts.optimizer.partition("(")[0] in ("SGD", "Adam", "AdamW")
    assert facts.training is True
    # The GAN has none.
    assert (facts.dataloader.batch_size if facts.dataloader else 16) == ran.case.batch_size


def test_it_is_advised(ran: Ran) -> None:
    frame = ProfileView(ran.profile)
    outcomes = {status.outcome for status in advise(frame, frame.selection()).rules}
    assert "silent" in outcomes
    assert "failed" not in outcomes
