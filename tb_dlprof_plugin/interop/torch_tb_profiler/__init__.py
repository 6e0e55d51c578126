"""Copies of traces that torch-tb-profiler, the PyTorch Profiler tab, can read.

All that the product does for that tab is here; a recording leaves a copy where the extra ``[pytorch-views]`` is
installed (`wanted`), and the commands make one where they are asked to.
"""
