"""Facts equal what was set, read by the analysis from the stored profile or straight from the probes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture import profile, trace_handler  # noqa: E402
from tb_dlprof_plugin.capture.facts.collect import collect_facts  # noqa: E402
from tb_dlprof_plugin.capture.facts.loader import dataloader_facts  # noqa: E402
from tb_dlprof_plugin.capture.facts.machine import complete_system, system_of_training  # noqa: E402
from tb_dlprof_plugin.capture.facts.optimizer import describe  # noqa: E402
from tb_dlprof_plugin.model.run_facts import DataLoaderFacts  # noqa: E402
from tb_dlprof_plugin.store.logdir import read_profiles  # noqa: E402


@pytest.fixture
def _switches():
    matmul, conv = torch._C._get_cublas_allow_tf32(), torch._C._get_cudnn_allow_tf32()
    flags = (torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.backends.cudnn.enabled)
    yield
    torch.backends.cuda.matmul.allow_tf32 = matmul
    torch.backends.cudnn.allow_tf32 = conv
    torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.backends.cudnn.enabled = flags
    torch.use_deterministic_algorithms(False)


@pytest.mark.usefixtures("_switches")
@pytest.mark.parametrize("on", [True, False])
def test_switches(on, recwarn):
    torch.backends.cuda.matmul.allow_tf32 = on
    torch.backends.cudnn.allow_tf32 = on
    torch.backends.cudnn.benchmark = on
    torch.backends.cudnn.deterministic = on
    torch.backends.cudnn.enabled = on
    torch.use_deterministic_algorithms(on)
    recwarn.clear()
    with torch.autograd.set_detect_anomaly(on):
        facts = collect_facts()
    assert facts.matmul_allow_tf32 is on
    assert facts.cudnn_allow_tf32 is on
    assert facts.cudnn_benchmark is on
    assert facts.cudnn_deterministic is on
    assert facts.cudnn_enabled is on
    assert facts.deterministic_algorithms is on
    assert facts.anomaly_mode is on


@pytest.mark.parametrize("precision", ["tf32", "ieee"])
def test_the_newer_precision_switches(precision):
    if not hasattr(torch.backends.cuda.matmul, "fp32_precision"):
        pytest.skip("this torch has only the older switches")
    matmul, conv = torch.backends.cuda.matmul, torch.backends.cudnn.conv
    before = matmul.fp32_precision, conv.fp32_precision
    try:
        matmul.fp32_precision = precision
        conv.fp32_precision = precision
        facts = collect_facts()
        assert (matmul.fp32_precision, conv.fp32_precision) == (precision, precision)
    finally:
        matmul.fp32_precision, conv.fp32_precision = before
    assert facts.matmul_allow_tf32 is (precision == "tf32")
    assert facts.cudnn_allow_tf32 is (precision == "tf32")


def test_without_a_model_its_facts_are_unknown():
    facts = collect_facts()
    unknown = (facts.model, facts.parameter_count, facts.compiled, facts.training, facts.autocast, facts.dataloader)
    assert unknown == (None,) * 6
    assert facts.grad_scaler is None
    assert facts.optimizer is None


def test_dataloader_settings():
    data = torch.utils.data.TensorDataset(torch.zeros(8))
    loader = torch.utils.data.DataLoader(
        data, batch_size=4, num_workers=2, prefetch_factor=3, persistent_workers=True, drop_last=True, pin_memory=False
    )
    assert dataloader_facts(loader) == DataLoaderFacts(
        num_workers=2,
        pin_memory=False,
        prefetch_factor=3,
        persistent_workers=True,
        batch_size=4,
        drop_last=True,
        dataset="TensorDataset",
        batches=2,
    )


@pytest.mark.parametrize("odd", [object(), [], {}, "text", 3])
def test_odd_dataloaders_do_no_harm(odd):
    facts = dataloader_facts(odd)
    assert facts is None or facts.num_workers is None


def test_model_facts(kit):
    model = kit.Net().half()
    facts = collect_facts(model=torch.nn.DataParallel(model))
    assert facts.model == "Net"
    assert facts.parallel_wrapper == "DataParallel"
    assert facts.parameter_count == sum(p.numel() for p in model.parameters())
    assert facts.parameter_dtypes == ["float16"]
    assert facts.compiled is False
    assert collect_facts(model=torch.compile(model, backend="eager")).compiled is True


@pytest.mark.parametrize("autocast", [True, False])
def test_what_the_forward_pass_shows(tmp_path, kit, autocast):
    model = kit.Net().to(memory_format=torch.channels_last)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    images = torch.randn(6, 3, 8, 8).to(memory_format=torch.channels_last)
    data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images), batch_size=3)
    with profile(tmp_path, model, data, schedule=(0, 1, 2, 1), wait=True) as prof:
        for _ in range(3):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
                loss = model(images).float().sum()
            loss.backward()
            optimizer.step()
            prof.step()
    facts = read_profiles(tmp_path)[0].profile.facts
    assert facts.autocast is autocast
    assert facts.autocast_dtype == ("bfloat16" if autocast else None)
    assert facts.batch_size == 6
    assert facts.channels_last is True
    assert facts.training is True
    assert facts.optimizer == "AdamW(fused=True)"
    assert facts.grad_scaler is False
    assert facts.dataloader.batch_size == 3


def test_an_optimizer_is_described_without_what_wraps_it():
    class LikeLightning:
        def __init__(self, optimizer):
            self.optimizer = optimizer

    class LikeAccelerate(torch.optim.Optimizer):
        def __init__(self, optimizer):
            self.optimizer, self.scaler = optimizer, None

    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.ones(1))], fused=True)
    for wrapped in (
        optimizer,
        LikeLightning(optimizer),
        LikeAccelerate(optimizer),
        LikeLightning(LikeAccelerate(optimizer)),
    ):
        assert describe(wrapped) == "AdamW(fused=True)"
    assert describe(torch.optim.SGD([torch.nn.Parameter(torch.ones(1))])) == "SGD"


@pytest.mark.parametrize("enabled", [True, False])
def test_grad_scaler_is_seen_at_the_optimizer_step(tmp_path, kit, enabled):
    model = kit.Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0, enabled=enabled)
    handler = trace_handler(tmp_path)
    with torch.profiler.profile(on_trace_ready=handler):
        scaler.scale(model(torch.randn(2, 3, 8, 8)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert handler.wait(60)
    facts = read_profiles(tmp_path)[0].profile.facts
    assert facts.grad_scaler is enabled
    assert facts.grad_scaler_scale == (128.0 if enabled else None)


def test_grad_scaler_is_seen_though_it_skips_every_step(tmp_path):
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=1e-3)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**120)
    handler = trace_handler(tmp_path)
    with torch.profiler.profile(on_trace_ready=handler):
        scaler.scale((weight * 1e30).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert torch.equal(weight, torch.ones(2))
    assert handler.wait(60)
    facts = read_profiles(tmp_path)[0].profile.facts
    assert facts.grad_scaler is True
    assert facts.optimizer is None


def test_batch_size_by_keyword_arguments(tmp_path):
    class Keywords(torch.nn.Module):
        def forward(self, *, input_ids):
            return input_ids.float().sum()

    model = Keywords()
    handler = trace_handler(tmp_path, model=model)
    with torch.profiler.profile(on_trace_ready=handler):
        model(input_ids=torch.zeros(5, 7, dtype=torch.long))
    assert handler.wait(60)
    assert read_profiles(tmp_path)[0].profile.facts.batch_size == 5


def test_system():
    system = complete_system(system_of_training())
    assert system.torch_version == str(torch.__version__)
    assert system.python_version
    assert system.hostname
    assert system.cpu_count
    assert system.os
    if not torch.cuda.is_available():
        assert system.gpus == []
