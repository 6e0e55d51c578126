"""Each remedy does what it says on a small training, or says why it changed nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from support.marks import short_of

from tb_dlprof_plugin.advice.engine import all_rules
from tb_dlprof_plugin.trial.facts import TrialFacts
from tb_dlprof_plugin.trial.inside.called_models import mostly_repeats
from tb_dlprof_plugin.trial.inside.hooks import TrialHooks
from tb_dlprof_plugin.trial.inside.loss_scaling import LossScaling
from tb_dlprof_plugin.trial.inside.remedies import classes, make
from tb_dlprof_plugin.trial.inside.remedy import Remedy

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset  # noqa: E402


@pytest.fixture
def apply(hooks: TrialHooks) -> Callable[..., Remedy]:
    def on(name: str, model: nn.Module | None = None) -> Remedy:
        remedy = make(name)
        remedy.on_import(hooks)
        if model is not None:
            remedy.on_model(model, hooks)
        return remedy

    return on


def data() -> TensorDataset:
    return TensorDataset(torch.randn(16, 3), torch.randn(16, 2))


def steps(remedy: Remedy, model: nn.Module, count: int = 3, shape: tuple[int, ...] = (4, 3)) -> list[float]:
    """Losses of a training of few steps."""
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for step in range(count):
        optimizer.zero_grad(set_to_none=False)
        loss = model(torch.randn(shape)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        remedy.on_step(step)
    return losses


@pytest.mark.parametrize("name", classes())
def test_says_what_it_is(name: str) -> None:
    remedy = make(name)
    assert remedy.name == name
    assert remedy.title
    assert remedy.may_change.endswith(".")
    assert remedy.code().endswith("\n")
    assert set(remedy.rules) <= {one.rule.id for one in all_rules()}


@pytest.mark.parametrize(
    "name",
    short_of(
        [name for name in classes() if not name.startswith(("compile", "omp_", "host_", "expand"))],
        {"activation_checkpointing", "channels_last", "cudnn_benchmark", "tf32"},
    ),
)
def test_an_unfit_training_runs_on_and_its_remedy_says_why(name: str, apply: Callable[..., Remedy]) -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2))
    torch.manual_seed(1)
    remedy = apply(name, model)
    assert all(loss == loss for loss in steps(remedy, model))
    said = remedy.no_effect()
    works = {"bf16_autocast", "frozen_garbage", "fused_optimizer", "foreach_optimizer", "zero_grad_to_none"}
    assert (said is None) == (name in works)


def test_tf32_is_on_whatever_the_script_set_before_its_model(hooks: TrialHooks) -> None:
    def precisions() -> list[object]:
        getter = getattr(torch._C, "_get_fp32_precision_getter", None)
        exact = [getter("cuda", one) for one in ("matmul", "conv", "rnn")] if getter else []
        return [torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32, *exact]

    before = precisions()
    try:
        remedy = make("tf32")
        remedy.on_import(hooks)
        # GIVEN a script with the older switch: since torch 2.9 it leaves precisions that disagree
        torch.backends.cuda.matmul.allow_tf32 = False
        remedy.on_model(nn.Linear(2, 2), hooks)
        assert (torch.get_float32_matmul_precision(), torch.backends.cuda.matmul.allow_tf32) == ("high", True)
        assert torch.backends.cudnn.allow_tf32
    finally:
        hooks.undo()
    assert precisions() == before


def test_loader_remedies_change_the_constructor(apply: Callable[..., Remedy]) -> None:
    for name in ("loader_workers_2", "persistent_workers", "prefetch_factor", "larger_batch"):
        assert apply(name).no_effect() == "The script makes no DataLoader."
    loader = DataLoader(data(), 4, shuffle=True)
    # The remedies that need workers are applied to the script's arguments: the last applied is the first to see them.
    assert (loader.num_workers, loader.persistent_workers, loader.batch_size) == (2, True, 8)


def test_persistent_workers_and_prefetching_need_workers(apply: Callable[..., Remedy]) -> None:
    persistent, prefetch = apply("persistent_workers"), apply("prefetch_factor")
    DataLoader(data())
    assert persistent.no_effect() == prefetch.no_effect() == "DataLoader: it has no workers."
    loader = DataLoader(data(), num_workers=1)
    assert (loader.persistent_workers, loader.prefetch_factor) == (True, 8)


def test_batches_are_the_same_with_workers(apply: Callable[..., Remedy]) -> None:
    dataset = data()

    def batches() -> list[list[float]]:
        loader = DataLoader(dataset, 4, shuffle=True, generator=torch.Generator().manual_seed(3))
        return [inputs.flatten().tolist() for inputs, _ in loader]

    without = batches()
    apply("loader_workers_1")
    assert batches() == without


def test_an_iterable_dataset_keeps_its_workers(apply: Callable[..., Remedy]) -> None:
    class Stream(IterableDataset):
        def __iter__(self) -> Iterator[int]:
            return iter(range(4))

    remedy = apply("loader_workers_2")
    assert DataLoader(Stream()).num_workers == 0
    assert "iterable" in (remedy.no_effect() or "")


def test_a_loader_that_is_made_again_from_the_first_has_the_same_larger_batch(apply: Callable[..., Remedy]) -> None:
    apply("larger_batch")
    dataset = data()
    first = DataLoader(dataset, 4)
    assert DataLoader(dataset, first.batch_size).batch_size == 8


def test_a_fused_optimizer_computes_the_same_update(apply: Callable[..., Remedy]) -> None:
    def trained() -> tuple[bool | None, list[float]]:
        torch.manual_seed(0)
        model = nn.Linear(3, 2)
        optimizer = torch.optim.AdamW((p for p in model.parameters()), lr=0.1)
        model(torch.ones(1, 3)).sum().backward()
        optimizer.step()
        return optimizer.defaults["fused"], model.weight.flatten().tolist()

    unfused = trained()
    apply("fused_optimizer")
    fused = trained()
    assert (unfused[0], fused[0]) == (None, True)
    assert fused[1] == pytest.approx(unfused[1], rel=1e-6)


def test_an_optimizer_of_integers_or_one_that_is_differentiable_stays_as_it_is(apply: Callable[..., Remedy]) -> None:
    remedy = apply("fused_optimizer")
    torch.optim.SGD([torch.zeros(2, dtype=torch.complex64)], lr=0.1)
    assert remedy.no_effect() == "Optimizer: a parameter is not of floating point numbers."
    assert torch.optim.SGD([torch.zeros(2)], lr=0.1, differentiable=True).defaults["fused"] is None


def test_zero_grad_drops_gradients(apply: Callable[..., Remedy]) -> None:
    remedy = apply("zero_grad_to_none")
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(torch.ones(1, 3)).sum().backward()
    optimizer.zero_grad()
    assert model.weight.grad is None
    assert remedy.no_effect() == "zero_grad sets gradients to None already."
    optimizer.zero_grad(set_to_none=False)
    assert remedy.no_effect() is None


def test_autocast_gives_outputs_in_fp32_and_leaves_a_script_with_autocast_alone(apply: Callable[..., Remedy]) -> None:
    model = nn.Linear(3, 2)
    remedy = apply("bf16_autocast", model)
    inputs = torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert model(inputs).dtype is torch.bfloat16
    assert remedy.no_effect() == "The script uses autocast itself."
    output = model(inputs)
    assert output.dtype is torch.float32
    assert torch.equal(output, output.bfloat16().float())


def test_channels_last_reaches_weights_and_images(apply: Callable[..., Remedy], hooks: TrialHooks) -> None:
    seen: list[bool] = []

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3)

        def forward(self, images: Any) -> Any:
            seen.append(images.is_contiguous(memory_format=torch.channels_last))
            return self.conv(images)

    model = Net()
    remedy = apply("channels_last", model)
    model(torch.randn(2, 3, 8, 8))
    assert seen == [True]
    assert model.conv.weight.is_contiguous(memory_format=torch.channels_last)
    assert remedy.no_effect() is None
    hooks.undo()
    assert model.conv.weight.is_contiguous()


def test_a_model_with_its_channels_last_is_left_alone(apply: Callable[..., Remedy]) -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3)).to(memory_format=torch.channels_last)
    assert apply("channels_last", model).no_effect() == "The convolutions have their channels last."


def test_checkpointed_blocks_give_the_same_gradients(apply: Callable[..., Remedy]) -> None:
    def gradients() -> list[float]:
        torch.manual_seed(0)
        block = lambda: nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))  # noqa: E731
        model = nn.Sequential(nn.Sequential(block(), block()))
        if remedies:
            remedies[0] = apply("activation_checkpointing", model)
        model(torch.ones(2, 3)).sum().backward()
        return [value for p in model.parameters() for value in p.grad.flatten().tolist()]

    remedies: list[Any] = []
    kept = gradients()
    remedies = [None]
    assert gradients() == kept
    assert remedies[0].no_effect() is None


def test_checkpointing_of_the_script_is_switched_off(apply: Callable[..., Remedy]) -> None:
    remedy = apply("no_checkpointing")
    from torch.utils.checkpoint import checkpoint

    runs: list[int] = []

    def block(x: Any) -> Any:
        runs.append(1)
        return x.sin()

    checkpoint(block, torch.ones(2, requires_grad=True), use_reentrant=False).sum().backward()
    assert runs == [1]
    assert remedy.no_effect() is None


def test_anomaly_mode_and_deterministic_algorithms_stay_off(apply: Callable[..., Remedy]) -> None:
    switches, deterministic = apply("slow_switches_off"), apply("nondeterministic")
    torch.autograd.set_detect_anomaly(True)
    torch.use_deterministic_algorithms(True)
    assert not torch.is_anomaly_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert switches.no_effect() is None
    assert deterministic.no_effect() is None


def test_debugging_variables_are_switched_off_for_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("PYTHONMALLOC", "debug")
    assert make("slow_switches_off").environment() == {"CUDA_LAUNCH_BLOCKING": "0", "PYTHONMALLOC": ""}


def test_waiting_and_emptied_caches_are_left_out_also_where_the_loop_holds_the_functions(
    apply: Callable[..., Remedy],
) -> None:
    held = torch.cuda.empty_cache, torch.cuda.synchronize
    remedies = apply("no_empty_cache", nn.Linear(2, 2)), apply("no_synchronize", nn.Linear(2, 2))
    for one in held:
        # Without a GPU, waiting for one is an error.
        one()
    assert [one.no_effect() for one in remedies] == [None, None]


def test_garbage_is_frozen_once_and_not_collected_by_the_script(
    apply: Callable[..., Remedy], hooks: TrialHooks
) -> None:
    remedy = apply("frozen_garbage")
    steps(remedy, nn.Linear(3, 2))
    assert gc.get_freeze_count() > 0
    assert gc.collect() == 0
    hooks.undo()
    assert gc.get_freeze_count() == 0


def test_threads_of_the_script_are_replaced(apply: Callable[..., Remedy]) -> None:
    before = torch.get_num_threads()
    remedy = apply("omp_threads_1")
    torch.set_num_threads(before + 1)
    assert torch.get_num_threads() == 1
    assert remedy.no_effect() is None
    torch.set_num_threads(1)
    assert remedy.no_effect() == "The script uses 1 already."


def test_attention_weights_that_nobody_reads_are_not_computed(apply: Callable[..., Remedy]) -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 3, 8)
    expected, weights = layer(x, x, x)
    remedy = apply("fused_attention", layer)
    output, none = layer(x, x, x)
    assert (weights is None, none is None) == (False, True)
    assert torch.allclose(output, expected, atol=1e-6)
    assert remedy.no_effect() is None


def test_a_model_that_the_script_compiles_is_left_alone(apply: Callable[..., Remedy]) -> None:
    model = nn.Linear(2, 2)
    model.compile(backend="eager")
    assert apply("compile", model).no_effect() == "The script compiles the model itself."


def test_compiles_the_called_model_and_undoes_it(apply: Callable[..., Remedy], hooks: TrialHooks) -> None:
    model = nn.Linear(2, 2)
    assert apply("compile", model).no_effect() is None
    assert model._compiled_call_impl is not None
    hooks.undo()
    assert model._compiled_call_impl is None


@pytest.mark.parametrize(
    "name", [name for name in classes() if name == "no_sync" or name.startswith(("ddp_", "fsdp_"))]
)
def test_needs_several_ranks(name: str) -> None:
    assert make(name).why_not(TrialFacts(cuda=True)) == "The training has one rank."


@pytest.mark.parametrize(
    "name", ["tf32", "fp16_autocast", "pin_memory", "cuda_graphs", "cudnn_benchmark", "no_synchronize"]
)
def test_needs_a_gpu(name: str) -> None:
    assert make(name).why_not(TrialFacts(cuda=False)) == "The training uses no GPU."


def test_cudnn_benchmark_that_the_script_has_switched_on_has_no_effect(
    hooks: TrialHooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for is_on, says in ((False, None), (True, "torch.backends.cudnn.benchmark is on.")):
        monkeypatch.setattr(torch.backends.cudnn, "benchmark", is_on)
        remedy = make("cudnn_benchmark")
        remedy.on_import(hooks)
        remedy.on_model(nn.Linear(2, 2), hooks)
        assert torch.backends.cudnn.benchmark
        assert remedy.no_effect() == says
        hooks.undo()


def test_a_compiled_model_is_not_captured(hooks: TrialHooks) -> None:
    model = nn.Linear(2, 2)
    model.compile(backend="eager")
    remedy = make("cuda_graphs")
    remedy.on_model(model, hooks)
    assert "The script compiles the model" in (remedy.no_effect() or "")


def test_tf32_that_the_script_has_switched_on_has_no_effect(hooks: TrialHooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    for precision, says in (("highest", None), ("high", "TF32 is on for matrix products and convolutions.")):
        torch.set_float32_matmul_precision(precision)
        remedy = make("tf32")
        remedy.on_import(hooks)
        assert torch.get_float32_matmul_precision() == "high"
        assert remedy.no_effect() == says
        hooks.undo()
        assert torch.get_float32_matmul_precision() == precision
    torch.set_float32_matmul_precision("highest")


def test_old_gpus_are_not_asked_for_what_they_lack() -> None:
    volta = TrialFacts(cuda=True, compute_capability=(7, 0))
    assert "7.0" in (make("tf32").why_not(volta) or "")
    assert "7.0" in (make("bf16_autocast").why_not(volta) or "")
    assert make("fp16_autocast").why_not(volta) is None


def test_bf16_is_likely_to_gain_on_a_cpu_that_multiplies_it_where_steps_are_long() -> None:
    bf16 = make("bf16_autocast")
    assert bf16.usual(TrialFacts(cuda=True)) > 0
    assert bf16.usual(TrialFacts(cuda=False, cpu_multiplies_bf16=True, step_ms=100.0)) > 0
    assert bf16.usual(TrialFacts(cuda=False, cpu_multiplies_bf16=True, step_ms=10.0)) == 0
    assert bf16.usual(TrialFacts(cuda=False, step_ms=100.0)) < 0


def test_more_workers_than_cpus_are_not_tried() -> None:
    assert "2 CPUs" in (make("loader_workers_4").why_not(TrialFacts(cpu_count=2)) or "")
    assert make("loader_workers_2").why_not(TrialFacts(cpu_count=2)) is None


def test_scaled_losses_leave_gradients_as_they_are_and_skip_steps_that_overflow(hooks: TrialHooks) -> None:
    scaling = LossScaling(device_type="cpu")
    scaling.install(hooks)
    weight = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    for _ in range(2):
        # Gradients of two backward passes add up.
        (weight * 3).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [6.0, 6.0]
    optimizer.step()
    assert (weight.tolist(), scaling.skipped_steps) == ([-2.0, -2.0], 0)
    optimizer.zero_grad()
    (weight * 1e36).sum().backward()
    optimizer.step()
    assert (weight.tolist(), scaling.skipped_steps) == ([-2.0, -2.0], 1)
    assert scaling.scale == 32768.0


def test_a_closure_runs_before_its_gradients_are_checked(hooks: TrialHooks) -> None:
    scaling = LossScaling(device_type="cpu")
    scaling.install(hooks)
    weight = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=0.5)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (weight * 1e36).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert (weight.tolist(), scaling.skipped_steps) == ([1.0], 1)


def test_a_script_with_a_scaler_of_its_own_is_left_alone(hooks: TrialHooks) -> None:
    scaling = LossScaling(device_type="cpu")
    scaling.install(hooks)
    weight = nn.Parameter(torch.ones(1))
    torch.amp.GradScaler("cpu").scale((weight * 2).sum()).backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [2 * 65536.0]
    assert scaling.no_effect == "The script scales its losses itself."


@pytest.mark.parametrize(("rates", "mostly"), [((0.1,) * 4, True), ((0.1,) * 3, False), ((0.0, 0.1, 0.2, 0.3), False)])
def test_a_model_mostly_repeats_where_its_blocks_compute_with_the_same_numbers(
    rates: Sequence[float], mostly: bool
) -> None:
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(8, 8), nn.Dropout(rate)) for rate in rates)
    head = nn.Linear(8, 2)
    assert mostly_repeats([nn.ModuleDict({"blocks": blocks, "head": head})]) == mostly
    assert not mostly_repeats([nn.ModuleDict({"blocks": blocks, "head": nn.Linear(64, 64)})])


@pytest.mark.parametrize("in_place", [False, True])
def test_what_the_script_compiles_is_compiled_for_each_shape(apply: Callable[..., Remedy], in_place: bool) -> None:
    compilations: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        compilations.append([one.shape for one in inputs if isinstance(one, torch.Tensor)])
        return graph

    class Twice(nn.Linear):
        def forward(self, x: Any) -> Any:
            return 2 * super().forward(x)

    torch._dynamo.reset()
    remedy = apply("compile_static_shapes")
    assert remedy.no_effect() == "The script compiles nothing."
    model: Any = Twice(3, 2)
    if in_place:
        model.compile(backend=backend)
    else:
        model = torch.compile(model, backend=backend)
    for count in (4, 5, 6):
        model(torch.ones(count, 3))
    assert remedy.no_effect() is None
    # With dynamic shapes, which torch tries from the second one on, there are two.
    assert len(compilations) == 3


def test_shapes_that_the_script_says_are_dynamic_or_not_stay_so(apply: Callable[..., Remedy]) -> None:
    remedy = apply("compile_static_shapes")
    torch.compile(nn.Linear(3, 2), dynamic=True)
    assert remedy.no_effect() == "The script says what shapes are dynamic."


@pytest.mark.long
def test_repeated_blocks_are_compiled_in_place_of_the_model(apply: Callable[..., Remedy]) -> None:
    def block() -> nn.Module:
        return nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    model = nn.Sequential(nn.Sequential(block(), block()), nn.Linear(3, 2))
    remedy = apply("compile_blocks", model)
    assert all(one._compiled_call_impl is not None for one in model[0])
    assert model._compiled_call_impl is None
    assert remedy.no_effect() is None
    assert apply("compile_blocks", nn.Linear(3, 2)).no_effect() == "The model has no list of blocks of the same class."
