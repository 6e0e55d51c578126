"""One training step, recorded by several profilers: which the readers of their formats are compared with."""
