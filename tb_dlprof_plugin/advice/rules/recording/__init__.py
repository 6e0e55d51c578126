"""Rules of the topic "The recording", with the helpers that only they use."""
