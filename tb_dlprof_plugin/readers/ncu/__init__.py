"""Nsight Compute: counters of single kernels, which are no recording of a program but belong to one."""
