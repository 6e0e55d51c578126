"""Estimates the step without the profiler, and replays its launches."""
