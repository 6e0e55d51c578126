"""Trace files in, `model.timeline.Timeline` out: one package per format."""
