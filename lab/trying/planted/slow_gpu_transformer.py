"""For the grid: a transformer with several faults that add up, and not all of which are worth repairing."""

import torch
from parts import fixed_batches, train, transformer

model = transformer(768, 8, 12, attention_weights=True).cuda()
batches = fixed_batches(16, 512, 768, device="cuda")
train(model, torch.optim.AdamW(model.parameters(), foreach=False), batches, device="cuda")
