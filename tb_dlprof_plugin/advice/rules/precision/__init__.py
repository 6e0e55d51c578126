"""Rules of the topic "Precision and Tensor Cores", with the helpers that only they use."""
