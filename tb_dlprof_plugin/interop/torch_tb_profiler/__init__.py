"""Copies of traces that torch-tb-profiler, the PyTorch Profiler tab, can read."""
