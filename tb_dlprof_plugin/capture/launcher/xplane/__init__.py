"""Records an unchanged script of JAX or TensorFlow with that framework's own profiler, which writes XPlane files.

`jax_calls` and `tensorflow_calls` pass each call of a compiled function on to a `CallRecorder`, which counts iterations
and starts and stops the profiler. Of the standard library and the framework alone.
"""
