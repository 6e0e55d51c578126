"""Kernel classification held against the GPU's own counters of matrix instructions. See `__main__` for the commands."""
