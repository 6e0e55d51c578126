"""What the hook takes from torch.compile while it compiles."""
