"""The GPU, or on a CPU run the step, waits for the DataLoader."""

from __future__ import annotations

from tb_dlprof_plugin.advice import thresholds
from tb_dlprof_plugin.advice.case import Case
from tb_dlprof_plugin.advice.claims import Claim
from tb_dlprof_plugin.advice.finding import EvidenceRow, Peer, Reading, Reference, Silent
from tb_dlprof_plugin.advice.rule import Finding, Rule
from tb_dlprof_plugin.advice.savings import saving
from tb_dlprof_plugin.measures import Frame
from tb_dlprof_plugin.measures.iterations import percent

RULE = Rule(
    id="dataloader_bound",
    title="The DataLoader holds up the step",
    looks_for="Time in which the training thread waits in the DataLoader while the GPU is idle (on a CPU run: all "
    "of that time).",
    why="A GPU that waits for data computes nothing. Loading that overlaps with training costs nothing.",
    fix="Load in worker processes, more of them, or make each sample cheaper.",
    ignore_when="The first batch of an epoch was recorded, and epochs are long.",
    thresholds=("DATALOADER_SHARE_PERCENT",),
    peers=(
        Peer("DLProf", "Dataloader Detector"),
        Peer("torch-tb-profiler", "DataLoader recommendation"),
    ),
    references=(
        Reference(
            "PyTorch: DataLoader",
            "https://docs.pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading",
        ),
        Reference(
            "PyTorch: performance tuning guide",
            "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html",
        ),
    ),
    facts=("workers",),
)

_WORKERS = 4


def check(case: Case) -> Finding | Silent:
    """Fires where the training thread waits in the DataLoader, with the GPU idle, for a notable share of the step."""
    waiting = case.steps.category_ns["dataloader"]
    if waiting is None:
        return Silent("DataLoader time was not recorded.", applicable=False)
    time = waiting // case.selection.count
    share = percent(time, case.step_ns) or 0.0
    subject = "with the GPU idle" if case.profile.has_gpu else "of the CPU run"
    if share < thresholds.DATALOADER_SHARE_PERCENT:
        return Silent(f"{share:.1f} % of the step is spent waiting in the DataLoader {subject}.")
    loader = case.facts.dataloader
    workers = loader.num_workers if loader else None
    # Without worker processes loading and training alternate; with them, more or faster workers can hide all of it.
    certain = workers == 0
    estimate = saving(
        case,
        round(time * (0.5 if certain else 0.2)),
        round(time * (0.9 if certain else 0.5)),
        time,
        f"At most the {time / 1e6:.2f} ms in which the step waits. "
        + (
            "With worker processes, loading overlaps with training: between half and all of it goes."
            if certain
            else "Workers are in use or unknown, so that a fifth to all of it goes, by how well more of them keep up."
        ),
    )
    settings = "not recorded" if workers is None else f"num_workers={workers}"
    return RULE.finding(
        title=f"The step waits {share:.0f} % of its time for the DataLoader",
        seen=f"{time / 1e6:.2f} ms of each {case.step_ns / 1e6:.2f} ms step are spent in the DataLoader {subject}. "
        f"DataLoader settings: {settings}.",
        readings=[
            Reading("Share of the step", share, "percent", thresholds.DATALOADER_SHARE_PERCENT),
            Reading("Waiting per step", time, "ns"),
            Reading("Worker processes", workers, "count"),
        ],
        evidence=[EvidenceRow("Dataloader", time, share, "overview", "dataloader")],
        change=_change(case, workers),
        code=_code(case, workers),
        saving=estimate,
        claim=Claim(waits=("dataloader",)),
        confirm="Record again: the Dataloader share on the Overview should fall and the step get shorter by as much.",
    )


def made(base: Frame, candidate: Frame) -> str:
    """The settings of the DataLoader that were raised or switched on."""
    before, after = base.profile.facts.dataloader, candidate.profile.facts.dataloader
    if before is None or after is None:
        return ""
    changes = []
    for name, old, new in (
        ("num_workers", before.num_workers, after.num_workers),
        ("prefetch_factor", before.prefetch_factor, after.prefetch_factor),
    ):
        if old is not None and new is not None and new > old:
            changes.append(f"{name} {old} to {new}")
    for name, was, now in (
        ("persistent_workers", before.persistent_workers, after.persistent_workers),
        ("pin_memory", before.pin_memory, after.pin_memory),
    ):
        if was is False and now:
            changes.append(f"{name} on")
    return ", ".join(changes)


def _change(case: Case, workers: int | None) -> str:
    if workers == 0:
        return "Load in worker processes, so that the next batches are made while this one trains."
    loader = case.facts.dataloader
    if loader is not None and loader.persistent_workers is False:
        return "Raise num_workers, keep the workers between epochs, and move work out of the dataset's __getitem__."
    return "Raise num_workers up to the number of CPU cores, or move work out of the dataset's __getitem__."


def _code(case: Case, workers: int | None) -> str:
    cores = case.profile.system.cpu_count or _WORKERS
    count = min(cores, _WORKERS if not workers else workers * 2)
    pin = "\n    pin_memory=True," if case.profile.has_gpu else ""
    return (
        "loader = torch.utils.data.DataLoader(\n    dataset,\n    batch_size=...,\n"
        f"    num_workers={count},{pin}\n    persistent_workers=True,\n    prefetch_factor=4,\n)\n"
    )
