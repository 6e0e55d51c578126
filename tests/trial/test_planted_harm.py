"""A remedy that changes what a training computes is caught by the whole command, however fast it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
if sys.platform == "win32":
    pytest.skip("try freezes processes", allow_module_level=True)

from support.script_runs import TB_DLPROF, execute, write

pytestmark = pytest.mark.long

HARMED = """
    import time

    class Harmed(nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, x):
            if torch.is_autocast_enabled("cpu"):
                # What a layer of the user's own does that goes down to FP16: its activations overflow.
                x = (x.half() * 60000 * 60000).float() * 0 + x
            return self.model(x)

    # The rate follows the workers, and what the fused optimizer gets is not the gradient: neither is written anywhere.
    harmed = Harmed()
    x = torch.randn(4000, 8)

    class Slow(TensorDataset):
        def __getitem__(self, index):
            time.sleep(0.002)
            return super().__getitem__(index)

    loader = DataLoader(Slow(x, x.sum(1).gt(0).long()), batch_size=4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * (1 + loader.num_workers))
    if optimizer.defaults["fused"]:
        for parameter in model.parameters():
            parameter.register_hook(lambda gradient: 1.5 * gradient)
    for _ in range(100000):
        for batch, target in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(harmed(batch), target).backward()
            optimizer.step()
"""


def test_an_overflow_a_wrong_rate_and_wrong_gradients_are_caught(tmp_path: Path) -> None:
    script = write(tmp_path, HARMED)
    done = execute(
        *TB_DLPROF, "try", "--record", "none", "--format", "json", "--budget", "180s", "--precision", "20%",
        "--remedies", "bf16_autocast,loader_workers_2,fused_optimizer,foreach_optimizer", script,
        cwd=tmp_path, XDG_DATA_HOME=str(tmp_path / "data"),
    )  # fmt: skip
    assert done.status == 0, done.err
    result = json.loads(done.out)
    found = {one["remedy"]: (one["verdict"], one["verdict_text"]) for one in result["rows"]}
    assert found["bf16_autocast"] == ("broken", "loss is not finite from step 0 on")
    assert found["loader_workers_2"] == ("differs", "lr is 0.3 instead of 0.1 from step 0 on")
    assert found["fused_optimizer"][0] == "differs"
    assert "larger in the mean step" in found["fused_optimizer"][1]
    # The remedy that harms nothing.
    assert found["foreach_optimizer"][0] in ("same to the bit", "within noise of the seed")
    assert set(result["best"]["remedies"]) <= {"foreach_optimizer"}
