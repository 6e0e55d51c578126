"""What to say about a recording in which no GPU work and no range was recorded: which option records it."""

from __future__ import annotations

from tb_dlprof_plugin.readers.sqlite_tables import Database

COMMAND = "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none COMMAND"


def why_nothing(database: Database) -> str:
    """The rest of a sentence that begins with the file's name."""
    if database.has("CUPTI_ACTIVITY_KIND_RUNTIME"):
        return (
            "holds CUDA calls, but no kernel, copy or NVTX range: nothing ran on a GPU while it was recorded, or the "
            f"recording ended before it did; record longer, with {COMMAND}."
        )
    others = [
        words
        for table, words in (("OSRT_API", "calls of the operating system"), ("COMPOSITE_EVENTS", "CPU samples"))
        if database.has(table)
    ]
    only = f"only {' and '.join(others)}" if others else "neither CUDA calls nor NVTX ranges"
    return (
        f"holds {only}: nothing of the GPU was recorded; record again with {COMMAND}, and with "
        "--trace-fork-before-exec=true where other processes of it do the work."
    )
