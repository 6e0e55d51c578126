"""Recordings of torch.profiler without the hook show the parallel wrapper and its settings, in a single process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture.facts.collect import collect_facts  # noqa: E402
from tb_dlprof_plugin.cli.open_profile import open_profile  # noqa: E402
from tb_dlprof_plugin.metrics.parallel_settings import ParallelSettings, parallel_settings  # noqa: E402

pytestmark = pytest.mark.slow


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.fixture
def one_of_two() -> Iterator[None]:
    """The calls of its group return at once."""
    from torch.testing._internal.distributed.fake_pg import FakeStore

    torch.distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    torch.distributed.destroy_process_group()


def shown(model: Any, path: Path) -> ParallelSettings:
    """What two recorded steps show, after two others."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step() -> None:
        model(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    step()
    step()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profiler:
        for _ in range(2):
            step()
            profiler.step()
    trace = path / "plain.pt.trace.json"
    profiler.export_chrome_trace(str(trace))
    return parallel_settings(open_profile(trace)[0])


def layers() -> Any:
    return torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("given", [{}, {"gradient_as_bucket_view": True}, {"find_unused_parameters": True}])
def test_settings_of_ddp(given: dict[str, bool], tmp_path: Path) -> None:
    model = torch.nn.parallel.DistributedDataParallel(layers(), **given)
    found = shown(model, tmp_path)
    assert found.wrapper == "DistributedDataParallel"
    assert found.ddp is not None
    assert found.ddp.gradient_as_bucket_view is ("gradient_as_bucket_view" in given)
    assert found.find_unused_parameters is (True if "find_unused_parameters" in given else None)


@pytest.mark.usefixtures("one_of_two")
@pytest.mark.parametrize("reshard", [True, False])
@pytest.mark.parametrize("prefetch", [True, False])
def test_settings_of_fsdp2(reshard: bool, prefetch: bool, tmp_path: Path) -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model, mesh = layers(), init_device_mesh("cpu", (2,))
    for layer in model:
        fully_shard(layer, mesh=mesh, reshard_after_forward=reshard)
    fully_shard(model, mesh=mesh)
    if prefetch:
        model[0].set_modules_to_forward_prefetch([model[1]])
    found, read = shown(model, tmp_path), collect_facts(model=model).fsdp
    assert found.wrapper == "FSDPModule"
    assert found.fsdp is not None
    assert read is not None
    columns = ("units", "resharded_units", "forward_prefetch", "backward_prefetch", "shard_ranks", "replicas")
    assert [getattr(found.fsdp, name) for name in columns] == [getattr(read, name) for name in columns]
