"""Reads XPlane files (``*.xplane.pb``): the profiles of TensorFlow, Keras and JAX."""
