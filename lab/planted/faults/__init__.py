"""One small training for each rule, in a file for each kind of fault; `common.PLANTED` has them all."""

from . import convolutions, copies, data_loading, idle_gpu, layers, memory, multi_gpu, optimizer, precision, recording

__all__ = [
    "convolutions",
    "copies",
    "data_loading",
    "idle_gpu",
    "layers",
    "memory",
    "multi_gpu",
    "optimizer",
    "precision",
    "recording",
]
