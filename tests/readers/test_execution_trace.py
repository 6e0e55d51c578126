"""PyTorch's execution traces, and its tables as text, are known as what they are."""

from __future__ import annotations

from pathlib import Path

import torch
from torch.profiler import ExecutionTraceObserver, profile

from tb_dlprof_plugin.readers.known_not_read import why_not_read


def test_what_torch_writes_is_known(tmp_path: Path) -> None:
    observer = ExecutionTraceObserver()
    observer.register_callback(str(tmp_path / "et.json"))
    observer.start()
    with profile() as recorded:
        torch.nn.Linear(4, 4)(torch.ones(2, 4)).sum().backward()
    observer.stop()
    observer.unregister_callback()
    assert "is an execution trace of PyTorch" in str(why_not_read(tmp_path / "et.json"))
    (tmp_path / "table.txt").write_text(recorded.key_averages().table(row_limit=3))
    assert "is the text of key_averages().table()" in str(why_not_read(tmp_path / "table.txt"))
    recorded.export_chrome_trace(str(tmp_path / "a.pt.trace.json"))
    assert why_not_read(tmp_path / "a.pt.trace.json") is None
