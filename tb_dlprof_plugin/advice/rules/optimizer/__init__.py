"""Rules of the topic "Optimizer and gradients", with the helpers that only they use."""
