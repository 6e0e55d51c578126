"""Reads what ``trtexec`` exports of a TensorRT engine: times, layers and their averages."""
