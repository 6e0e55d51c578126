"""Memory of models that several GPUs share, against the plan made from one GPU's recording of the same model.

    python -m lab.memory_plan.shared_models --out DIRECTORY      # two GPUs or more
    python -m lab.memory_plan.compare_shared_models DIRECTORY

Each model is recorded once by the hook on one GPU. Then all GPUs train it by DDP, by DDP with ZeroRedundancyOptimizer
(ZeRO 1), and by FSDP2 with each block as a unit; DIRECTORY/truth.json has what the allocator of each rank counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from .record import Configuration, Training, clear, counted, record
from .subjects import SUBJECTS, Subject

MODELS = {"gpt": 1, "vit": 2, "bert": 1, "vgg": 2}
"""Of `SUBJECTS`, with how many times the batch of the other recordings; bert and vgg had no part in the rules."""
WAYS = ("ddp", "zero1", "fsdp2")


def _subjects() -> list[Subject]:
    return [subject for subject in SUBJECTS if subject.name in MODELS]


def _configuration(subject: Subject) -> Configuration:
    return Configuration(MODELS[subject.name] * subject.batch_size)


def _shared(training: Training, way: str) -> None:
    """Divides a training among the ranks."""
    if way == "fsdp2":
        from torch.distributed.fsdp import fully_shard

        for block in training.model.blocks:
            fully_shard(block)
        fully_shard(training.model)
        training.optimizer = torch.optim.AdamW(training.model.parameters(), lr=1e-4)
        return
    training.model = DistributedDataParallel(training.model, device_ids=[torch.cuda.current_device()])  # type: ignore[assignment]
    if way == "zero1":
        parameters = training.model.parameters()
        training.optimizer = ZeroRedundancyOptimizer(parameters, optimizer_class=torch.optim.AdamW, lr=1e-4)


def measured(subject: Subject, way: str) -> dict[str, Any]:
    """What this rank's allocator counted, in bytes, since the model was divided."""
    clear()
    training = Training(subject, _configuration(subject))
    _shared(training, way)
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return counted(training)


def _rank(rank: int, world: int, store: Path, out: Path) -> None:
    torch.cuda.set_device(rank)
    subjects = _subjects()
    # Before the processes form a group: each GPU records its part of the models alone.
    sessions = [record(one, _configuration(one), out / one.name) for one in subjects[rank::world]]
    for session in sessions:
        session.wait(90)
    device = torch.device("cuda", rank)
    dist.init_process_group("nccl", init_method=store.as_uri(), rank=rank, world_size=world, device_id=device)
    # Loads the libraries, whose memory is outside the allocator.
    measured(subjects[0], "ddp")
    rows = []
    for subject in subjects:
        for way in WAYS:
            row = {"model": subject.name, "way": way, "held_out": subject.held_out}
            try:
                row |= measured(subject, way)
            except (RuntimeError, ValueError) as error:
                row["error"] = str(error)[:300]
            ranks: list[Any] = [None] * world
            dist.all_gather_object(ranks, row)
            rows.append(ranks)
            if rank == 0:
                print(subject.name, way, [one.get("peak_allocated", one.get("error")) for one in ranks], flush=True)
    if rank == 0:
        written = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "gpus": world, "rows": rows}
        (out / "truth.json").write_text(json.dumps(written, indent=1) + "\n")
    dist.destroy_process_group()


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    world = torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as meeting:
        mp.spawn(_rank, args=(world, Path(meeting) / "store", out), nprocs=world)  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    main()
