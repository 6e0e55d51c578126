"""The step as it is without the profiler: one estimate of its length, and one replay of what is launched in it."""
