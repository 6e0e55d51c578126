"""What the planner says of a training's memory, and what it took on a GPU."""
