"""Kernel classification compared with the GPU's own counters of matrix instructions. See `__main__` for the
commands."""
