"""Reads what holds memory on the GPU between two steps: the storages of parameters, gradients, optimizer states and
buffers by module, and every other block that the allocator has handed out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tb_dlprof_plugin.capture.facts.gpu_memory import most_used_device
from tb_dlprof_plugin.capture.modules import walk
from tb_dlprof_plugin.capture.warn import probe
from tb_dlprof_plugin.model.run_facts import OTHER_STORAGE, RunFacts, StorageKind, Storages

_MOST_STORAGES = 100_000
"""More would make the facts larger than the recording."""


def fill_storages(facts: RunFacts, model: Any, optimizer: Any) -> None:
    """Fill the storages on the GPU with the highest peak; leaves them empty where no tensor was on a GPU.

    Reads addresses and sizes, never a value. Takes about 1 us a tensor, and what `torch.cuda.memory_snapshot` takes.

    Args:
        facts: of a recording that has just ended, between two steps.
        model: whose names are used; without one, all modules are "".
        optimizer: whose states are read, and whose parameters where there is no model.
    """
    device = most_used_device()
    if device is None:
        return
    table = _named(device, model, [optimizer])
    probe(table.add_others)
    if len(table) <= _MOST_STORAGES:
        facts.storages = table.rows()


def named_addresses(device: int, model: Any, optimizers: Sequence[Any]) -> dict[int, tuple[StorageKind, str]]:
    """Kind and module of each named storage on a GPU, by its address."""
    return _named(device, model, optimizers).known


def _named(device: int, model: Any, optimizers: Sequence[Any]) -> _Table:
    table = _Table(device)
    names = _modules(model)
    for parameter in _parameters(model, optimizers):
        module = names.get(id(parameter), "")
        table.add("parameter", module, parameter)
        table.add("gradient", module, getattr(parameter, "grad", None))
        for optimizer in optimizers:
            for state in _states(optimizer, parameter):
                table.add("optimizer_state", module, state)
    for module, buffer in _buffers(model):
        table.add("buffer", module, buffer)
    return table


class _Table:
    def __init__(self, device: int) -> None:
        self._device = device
        self.known: dict[int, tuple[StorageKind, str]] = {}
        self._bytes: dict[tuple[StorageKind, str], list[int]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._bytes.values()))

    def add(self, kind: StorageKind, module: str, tensor: Any) -> None:
        """A tensor's storage, once: a second tensor in it is a view or shares it."""
        probe(lambda: self._add(kind, module, tensor))

    def _add(self, kind: StorageKind, module: str, tensor: Any) -> None:
        tensor = getattr(tensor, "_local_tensor", tensor)
        if tensor is None or not _is_on(tensor, self._device):
            return
        storage = tensor.untyped_storage()
        address, size = storage.data_ptr(), storage.nbytes()
        if size and address not in self.known:
            self.known[address] = kind, module
            self._bytes.setdefault((kind, module), []).append(int(size))

    def add_others(self) -> None:
        """Blocks of the caching allocator that no named storage lies in, by the size that was asked for."""
        import torch

        for segment in torch.cuda.memory_snapshot():
            if segment["device"] != self._device:
                continue
            at = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", at)
                at = address + block["size"]
                if block["state"] == "active_allocated" and address not in self.known:
                    size = block.get("requested_size") or block["size"]
                    self._bytes.setdefault((OTHER_STORAGE, ""), []).append(int(size))

    def rows(self) -> list[Storages]:
        """One row per kind and module, in the order in which they were read."""
        return [Storages(kind, module, sizes) for (kind, module), sizes in self._bytes.items()]


def _is_on(tensor: Any, gpu: int) -> bool:
    return tensor.device.type == "cuda" and tensor.device.index == gpu


def _parameters(model: Any, optimizers: Sequence[Any]) -> Iterator[Any]:
    """Of the model, then those that only the optimizers know."""
    seen: set[int] = set()
    found = list(model.parameters()) if model is not None else []
    for optimizer in optimizers:
        for group in getattr(optimizer, "param_groups", None) or ():
            found.extend(group["params"])
    for parameter in found:
        if id(parameter) not in seen:
            seen.add(id(parameter))
            yield parameter


def _modules(model: Any) -> dict[int, str]:
    """The path of the module that has a parameter, by the parameter's id: the first of several."""
    if model is None:
        return {}
    found: dict[int, str] = {}
    for path, module in walk(model):
        for parameter in module.parameters(recurse=False):
            found.setdefault(id(parameter), path)
    return found


def _buffers(model: Any) -> Iterator[tuple[str, Any]]:
    if model is not None:
        for path, module in walk(model):
            for buffer in module.buffers(recurse=False):
                yield path, buffer


def _states(optimizer: Any, parameter: Any) -> Iterator[Any]:
    """Tensors of a parameter's state. `optimizer.state` makes an entry for a parameter that is looked up by index."""
    import torch

    state = getattr(optimizer, "state", None)
    held = state.get(parameter) if state is not None else None
    if isinstance(held, dict):
        yield from (value for value in held.values() if isinstance(value, torch.Tensor))
