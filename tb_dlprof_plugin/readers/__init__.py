"""Reads trace files into a `model.timeline.Timeline`: one package per format."""
