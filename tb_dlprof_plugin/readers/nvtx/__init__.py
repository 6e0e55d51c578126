"""What NVTX ranges mean: the conventions of the programs that write them, each in one module."""
