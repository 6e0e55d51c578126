"""Reads ONNX Runtime's profiles: what ``SessionOptions.enable_profiling`` writes."""
