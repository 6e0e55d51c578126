"""The training of a subject on one rank: its model, its data and one step."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import bf16_compress_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset

from .models import VOCABULARY, Block, Convolutions, Experts, Patches, Residual, Tokens, Transformer
from .subjects import Size, Subject

_CPU = Size(width=128, layers=2, batch=2, length=64)
_CLASSES = 10


class Batches(IterableDataset[tuple[torch.Tensor, torch.Tensor]]):
    """The same batch again and again; ``delay_s`` is how long each takes."""

    def __init__(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        self.batch, self.delay_s = (inputs, targets), 0.0

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        while True:
            if self.delay_s:
                time.sleep(self.delay_s)
            yield self.batch


class Training:
    """A subject on this rank; calling it is one step.

    Attributes:
        model: for the hook; of a pipeline this rank's stage.
        blocks: the model's larger parts, in order.
        before_backward, before_update: called in every step before its (last) backward pass and before the optimizer's.
    """

    def __init__(self, subject: Subject, device: torch.device) -> None:
        torch.manual_seed(0)
        self.subject, self.device = subject, device
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.before_backward: Callable[[], None] = lambda: None
        self.before_update: Callable[[], None] = lambda: None
        self.size = subject.size
        if device.type == "cpu" and not subject.options.get("cpu", False):
            self.size = replace(_CPU, length=16) if subject.model in ("images", "patches") else _CPU
        build: dict[str, Callable[[], nn.Module]] = {
            "single": self._single,
            "ddp": self._ddp,
            "fsdp": self._fsdp,
            "hsdp": self._fsdp,
            "fsdp1": self._fsdp1,
            "tensor": self._tensor,
            "pipeline": self._pipeline,
            "experts": self._experts,
        }
        self._half = torch.bfloat16
        self.schedule: Any = None
        self.model = build[subject.parallelism]()
        inner = self.model.module if isinstance(self.model, DistributedDataParallel) else self.model
        blocks: Any = inner.blocks
        self.blocks: list[nn.Module] = list(blocks)
        self.optimizer = torch.optim.AdamW(_groups(self.model), lr=1e-5, fused=device.type == "cuda")
        self.data = Batches(*self._batch())
        self.loader = DataLoader(self.data, batch_size=None, pin_memory=False)
        self._iterator = iter(self.loader)

    @property
    def batch_size(self) -> int:
        """Of one rank and step."""
        return self.size.batch

    def __call__(self) -> None:
        inputs, targets = (part.to(self.device, non_blocking=True) for part in next(self._iterator))
        step = self._plain_step if self.schedule is None else self._pipeline_step
        loss = step(inputs, targets)
        self.before_update()
        self.optimizer.step()
        self.optimizer.zero_grad()
        if self.subject.reads_loss and loss is not None:
            loss.item()

    def _plain_step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        times = self.subject.options.get("accumulate", 1)
        loss = torch.zeros((), device=self.device)
        for turn in range(times):
            quiet = self.subject.options.get("no_sync", False) and turn + 1 < times
            with self.model.no_sync() if quiet else contextlib.nullcontext():  # type: ignore[operator]
                with torch.autocast(self.device.type, torch.bfloat16, enabled=self._autocast):
                    loss = self._loss(self.model(inputs), targets) / times
                if turn + 1 == times:
                    self.before_backward()
                loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _pipeline_step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor | None:
        losses: list[torch.Tensor] = []
        self.before_backward()
        if self.rank == 0:
            self.schedule.step(inputs)
        elif self.rank == self.world - 1:
            self.schedule.step(target=targets, losses=losses)
        else:
            self.schedule.step()
        if losses:
            return torch.stack(losses).mean().detach()
        # Other stages have no loss, and wait for their last gradient as those with one wait for it.
        if self.subject.reads_loss and self.device.type == "cuda":
            torch.cuda.current_stream().synchronize()
        return None

    @property
    def _autocast(self) -> bool:
        return self.subject.parallelism in ("single", "ddp", "experts")

    def _loss(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        if self.subject.model in ("images", "patches"):
            return F.cross_entropy(output.float(), target)
        if self.subject.model == "tokens":
            return F.cross_entropy(output.flatten(0, 1).float(), target.flatten())
        return F.mse_loss(output.float(), target)

    def _batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        size, longer = self.size, self.subject.options.get("longer", 1.0) if self.rank == self.subject.rank else 1.0
        if self.subject.model == "images":
            count = round(size.batch * longer)
            return torch.randn(count, 3, size.length, size.length), torch.randint(_CLASSES, (count,))
        if self.subject.model == "patches":
            count = round(size.batch * longer)
            images = torch.randn(count, 3, size.length, size.length), torch.randint(_CLASSES, (count,))
            return self._pinned(*images)
        length = round(size.length * longer) // 8 * 8
        if self.subject.model == "tokens":
            tokens = torch.randint(VOCABULARY, (size.batch, length + 1))
            return self._pinned(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous())
        inputs = torch.randn(size.batch, length, size.width)
        if self.subject.parallelism in ("fsdp", "hsdp", "fsdp1", "tensor", "pipeline"):
            inputs = inputs.to(self._half)
        return self._pinned(inputs, torch.randn(size.batch, length, size.width))

    def _pinned(self, inputs: torch.Tensor, targets: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return (inputs.pin_memory(), targets.pin_memory()) if self.device.type == "cuda" else (inputs, targets)

    def _transformer(self, layers: int | None = None) -> nn.Module:
        count, size = self.size.layers if layers is None else layers, self.size
        if self.subject.model == "tokens":
            # Of the longest sequences that any rank has.
            longest = round(size.length * self.subject.options.get("longer", 1.0))
            return Tokens(size.width, longest, count).to(self.device)
        if self.subject.model == "patches":
            return Patches(size.width, count).to(self.device)
        if self.subject.model == "residual":
            return Transformer([Residual(size.width) for _ in range(count)]).to(self.device)
        return Transformer([Block(self.size.width) for _ in range(count)]).to(self.device)

    def _single(self) -> nn.Module:
        images = self.subject.model == "images"
        return Convolutions(self.size.width, self.size.layers).to(self.device) if images else self._transformer()

    def _ddp(self) -> nn.Module:
        model, options = self._single(), self.subject.options
        if options.get("compiled", False):
            model.compile()
        wrapped = DistributedDataParallel(
            model,
            device_ids=[self.device] if self.device.type == "cuda" else None,
            bucket_cap_mb=options.get("bucket_mb", 25),
            find_unused_parameters=options.get("find_unused", False),
            gradient_as_bucket_view=options.get("bucket_view", True),
            static_graph=options.get("static_graph", False),
        )
        if options.get("hook") == "bf16":
            wrapped.register_comm_hook(None, bf16_compress_hook)
        return wrapped

    def _fsdp(self) -> nn.Module:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        if self.subject.parallelism == "hsdp":
            shape, names = (self.world // 2, 2), ("dp_replicate", "dp_shard")
        else:
            shape, names = (self.world,), ("dp_shard",)  # type: ignore[assignment]
        mesh = init_device_mesh(self.device.type, shape, mesh_dim_names=names)
        options = self.subject.options
        reduced = self._half if options.get("reduce") == "bf16" else torch.float32
        policy = MixedPrecisionPolicy(param_dtype=self._half, reduce_dtype=reduced)
        model = self._transformer()
        blocks: list[nn.Module] = [] if options.get("one_unit", False) else list(model.blocks.children())  # type: ignore[union-attr,operator]
        if options.get("tiny_units", False):
            blocks = [part for block in blocks for part in block.modules() if isinstance(part, nn.Linear)] + blocks
        for block in blocks:
            fully_shard(block, mesh=mesh, mp_policy=policy, reshard_after_forward=options.get("reshard", True))
        # By default the outermost unit keeps its parameters for the backward pass.
        fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=options.get("reshard_root"))
        if options.get("prefetch", False):
            for block, following in pairwise(blocks):
                block.set_modules_to_forward_prefetch([following])  # type: ignore[operator]
        return model

    def _fsdp1(self) -> nn.Module:
        from torch.distributed.fsdp import BackwardPrefetch, FullyShardedDataParallel, MixedPrecision
        from torch.distributed.fsdp.wrap import ModuleWrapPolicy

        return FullyShardedDataParallel(
            self._transformer(),
            auto_wrap_policy=ModuleWrapPolicy({Block}),
            mixed_precision=MixedPrecision(param_dtype=self._half, reduce_dtype=torch.float32),
            backward_prefetch=BackwardPrefetch.BACKWARD_PRE if self.subject.options.get("prefetch", True) else None,
            use_orig_params=True,
            device_id=self.device if self.device.type == "cuda" else None,
        )

    def _tensor(self) -> nn.Module:
        from torch.distributed.tensor.parallel import (
            ColwiseParallel,
            ParallelStyle,
            RowwiseParallel,
            parallelize_module,
        )

        mesh = init_device_mesh(self.device.type, (self.world,), mesh_dim_names=("tp",))
        model = self._transformer().to(self._half)
        columns, rows = ["mlp.up"], ["mlp.down"]
        if self.subject.model == "transformer":
            columns, rows = ["attention.q", "attention.k", "attention.v", *columns], ["attention.o", *rows]
        blocks: Any = model.blocks
        for block in blocks:
            plan: dict[str, ParallelStyle] = {name: ColwiseParallel() for name in columns}
            plan |= {name: RowwiseParallel() for name in rows}
            parallelize_module(block, mesh, plan)
        return model

    def _pipeline(self) -> nn.Module:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe

        options = self.subject.options
        layers = self.size.layers // self.world
        if self.rank == self.subject.rank:
            layers += options.get("extra", 0) + options.get("moved", 0)
        elif self.subject.rank is not None:
            layers -= options.get("moved", 0) // (self.world - 1)
        part = self._transformer(max(1, layers)).to(self._half)
        stage = PipelineStage(part, self.rank, self.world, self.device)
        kind = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}[options["schedule"]]
        parts = options["parts"] if self.device.type == "cuda" else 2
        self.schedule = kind(stage, parts, loss_fn=self._loss)
        return part

    def _experts(self) -> nn.Module:
        favour = self.subject.options.get("favour", 1 / self.world)
        shares = [(1 - favour) / max(1, self.world - 1)] * self.world
        shares[self.subject.rank or 0] = favour
        width = self.size.width
        blocks = [Block(width, Experts(width, shares)) for _ in range(self.size.layers)]
        model = Transformer(blocks).to(self.device)
        own = [name for name, _ in model.named_parameters() if ".expert." in name]
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(model, own)
        return DistributedDataParallel(model, device_ids=[self.device] if self.device.type == "cuda" else None)


def _groups(model: nn.Module) -> list[dict[str, Any]]:
    """Parameters of the optimizer: one fused call takes no mixture of divided and whole ones."""
    divided = [one for one in model.parameters() if isinstance(one, DTensor)]
    whole = [one for one in model.parameters() if not isinstance(one, DTensor)]
    return [{"params": group} for group in (divided, whole) if group]
