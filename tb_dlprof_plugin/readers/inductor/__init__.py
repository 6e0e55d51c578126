"""What TorchInductor writes of its compilations: logs of TORCH_TRACE, and the code of wrappers in them."""
