"""Names of runs that TensorBoard's fast loader lists and cannot read, and what to do about them."""

from __future__ import annotations

import json
from typing import Any

from tb_dlprof_plugin.model.visible import visible


def is_fast(provider: Any) -> bool:
    """Whether a data provider is that of the loader in Rust (``--load_fast``), a server that is asked over gRPC."""
    return type(provider).__name__ == "GrpcDataProvider"


def unreadable_name(run: str) -> str:
    """Why the fast loader cannot read a run of this name, and what to do, as a clause; "" where it can.

    The loader makes a key of run, tag and step as JSON, and reads the key without JSON's escapes: a name with a
    character that JSON escapes has a key that it refuses (``BadJson``, "expected a borrowed string";
    tensorboard-data-server 0.7.2 and before).
    """
    escaped = [letter for letter in dict.fromkeys(run) if letter in '"\\' or letter < " "]
    if not escaped:
        return ""
    plain = "".join("_" if letter in escaped else letter for letter in run)
    return (
        f"its name holds {' and '.join(_NAMES.get(letter, visible(letter)) for letter in escaped)}, and TensorBoard's "
        f"fast loader cannot read what is stored under such a name; rename its directory, for example to "
        f"{json.dumps(visible(plain), ensure_ascii=False)}, or start TensorBoard with --load_fast=false"
    )


_NAMES = {'"': "a quotation mark", "\\": "a backslash", "\n": "a line end", "\t": "a tab"}
