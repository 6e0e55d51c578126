"""One training step, recorded by several profilers: what the readers of their formats are held against."""
