"""The hook's facts of FSDP, in a process that is alone in its group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

from tb_dlprof_plugin.capture.facts.collect import collect_facts  # noqa: E402
from tb_dlprof_plugin.capture.facts.data_parallel import fill_sharding  # noqa: E402
from tb_dlprof_plugin.model.run_facts import FsdpFacts, RunFacts  # noqa: E402


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    store = torch.distributed.FileStore(str(tmp_path / "store"), 1)
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_units_of_fsdp2_and_when_they_free_their_parameters() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    mesh = init_device_mesh("cpu", (1,))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    model = torch.nn.Sequential(*(torch.nn.Linear(4, 4) for _ in range(3)))
    fully_shard(model[0], mesh=mesh, mp_policy=policy)
    fully_shard(model[1], mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    assert collect_facts(model=model).fsdp == FsdpFacts(
        2, 3, 1, True, False, ["bfloat16"], ["float32"], shard_ranks=1, replicas=1
    )
    model.set_modules_to_forward_prefetch([model[0]])
    found = collect_facts(model=model).fsdp
    assert found is not None
    assert found.forward_prefetch is True


class FullyShardedDataParallel(torch.nn.Module):
    """Has what FSDP1 has of its settings: FSDP1 itself needs a GPU."""

    def __init__(self, strategy: str, prefetch: object, inside: list[torch.nn.Module]) -> None:
        super().__init__()
        self.sharding_strategy, self.backward_prefetch = SimpleNamespace(name=strategy), prefetch
        self.forward_prefetch, self.limit_all_gathers, self._handle = False, True, object()
        self.process_group = SimpleNamespace(size=lambda: 8)
        self.mixed_precision = SimpleNamespace(param_dtype=torch.bfloat16, reduce_dtype=None)
        self.parts = torch.nn.ModuleList(inside)


def test_settings_of_fsdp1() -> None:
    block = FullyShardedDataParallel("FULL_SHARD", None, [torch.nn.Linear(2, 2)])
    facts = RunFacts()
    fill_sharding(facts, FullyShardedDataParallel("SHARD_GRAD_OP", None, [block]))
    assert facts.fsdp == FsdpFacts(1, 2, 1, False, False, ["bfloat16"], [], True, 8, 1)
    block._inter_node_pg = SimpleNamespace(size=lambda: 4)  # type: ignore[assignment]
    fill_sharding(facts, block)
    assert facts.fsdp is not None
    assert (facts.fsdp.shard_ranks, facts.fsdp.replicas) == (8, 4)


@pytest.mark.usefixtures("alone")
def test_hybrid_sharding_has_copies_and_the_ranks_of_each() -> None:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = torch.nn.Linear(4, 4)
    fully_shard(model, mesh=init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp_replicate", "dp_shard")))
    found = collect_facts(model=model).fsdp
    assert found is not None
    assert (found.shard_ranks, found.replicas) == (1, 1)


@pytest.mark.usefixtures("alone")
def test_variables_that_change_how_nccl_moves_data_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_P2P_DISABLE", "1")
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", "eth0")
    assert "NCCL_P2P_DISABLE=1" in collect_facts().communication_settings
    assert "eth0" not in "".join(collect_facts().communication_settings)


def test_other_models_have_none() -> None:
    assert collect_facts(model=torch.nn.Linear(2, 2)).fsdp is None
    assert collect_facts().fsdp is None
