"""The hook keeps nothing of the training alive: torch waits for the workers of a loader that lives until the exit."""

from __future__ import annotations

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import tb_dlprof_plugin  # noqa: E402


def test_model_loader_and_optimizer_are_free_once_the_block_ends(tmp_path) -> None:
    model = torch.nn.Linear(4, 2)
    loader = torch.utils.data.DataLoader(torch.randn(32, 4), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with tb_dlprof_plugin.profile(
        tmp_path, model=model, dataloader=loader, optimizer=optimizer, schedule=(0, 1, 2), wait=True
    ) as prof:
        for batch in loader:
            model(batch).sum().backward()
            optimizer.step()
            prof.step()
    watched = [weakref.ref(thing) for thing in (model, loader, optimizer)]
    del model, loader, optimizer, batch
    gc.collect()
    assert [ref() for ref in watched] == [None, None, None], "while prof itself is still alive"
    assert prof is not None


def test_the_loader_is_free_at_once_without_a_garbage_collection(tmp_path) -> None:
    loader = torch.utils.data.DataLoader(torch.randn(8, 4))
    handler = tb_dlprof_plugin.trace_handler(tmp_path, dataloader=loader)
    watched = weakref.ref(loader)
    gc.disable()
    try:
        del loader
        assert watched() is None
    finally:
        gc.enable()
        handler.close()
