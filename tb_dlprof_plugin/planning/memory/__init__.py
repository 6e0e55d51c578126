"""What a training takes of a GPU's memory, as recorded and after changes: a replay of PyTorch's caching allocator."""
