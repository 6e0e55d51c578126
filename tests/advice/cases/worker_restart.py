"""Cases of `worker_restart`: worker processes that start again in each epoch."""

from __future__ import annotations

from advice.case import Case
from advice.recordings import epochs, loading

from tb_dlprof_plugin.model.run_facts import DataLoaderFacts, RunFacts, System


def _loader(**facts: object) -> RunFacts:
    return RunFacts(dataloader=DataLoaderFacts(num_workers=2, **facts))  # type: ignore[arg-type]


_EIGHT = System(cpu_count=8)

CASES = (
    Case(
        "an epoch of one step",
        epochs,
        "fired",
        # 300 us of starting for both epochs, and 80 of stopping where the recording holds the end of one before.
        readings={
            "Stopping and starting workers, per epoch": 340_000,
            "Waiting for the first batch, per epoch": 100_000,
        },
        saving_ns=(204_000, 356_000, 440_000),
        says=["persistent_workers=True"],
        facts=_loader(persistent_workers=False, batches=1),
        system=_EIGHT,
    ),
    Case("an epoch of 50 steps", epochs, "silent", "0.7 % of the time per step",
         facts=_loader(persistent_workers=False, batches=50), system=_EIGHT),
    Case("persistent workers", epochs, "silent", "persistent_workers is on.", facts=_loader(persistent_workers=True)),
    Case("no epoch begins", loading("MultiProcessing", 100), "not_applicable", "No epoch began in the recording.",
         facts=_loader(persistent_workers=False)),
)  # fmt: skip
