"""For every rule a training with its fault and a twin without it, recorded and held to the rule."""
