"""GPT-2 of the transformers library, whose weights stay and whose attention gets two thin matrices, under FP16 with a
GradScaler and checkpoints, over texts of one length; its start takes long."""

import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.pytorch_utils import Conv1D

WORDS, LENGTH, BATCH, RANK = 16_000, 256, 12, 8


class Adapted(nn.Module):
    def __init__(self, base: Conv1D) -> None:
        super().__init__()
        inputs, outputs = base.weight.shape
        self.base = base
        self.down, self.up = nn.Linear(inputs, RANK, bias=False), nn.Linear(RANK, outputs, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + 2.0 * self.up(self.down(x))


def main() -> None:
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=WORDS, n_positions=LENGTH, n_embd=768, n_layer=8, n_head=12, use_cache=False,
        attn_implementation="eager",
    )  # fmt: skip
    model = GPT2LMHeadModel(config).requires_grad_(False)
    for block in model.transformer.h:
        block.attn.c_attn = Adapted(block.attn.c_attn)
    model.cuda().train()
    model.gradient_checkpointing_enable()
    model.enable_input_require_grads()
    parameters = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.0)
    scaler = torch.amp.GradScaler("cuda")
    words = torch.randint(0, WORDS, (64, BATCH, LENGTH), device="cuda")
    while True:
        for batch in words:
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(input_ids=batch, labels=batch).loss
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(parameters, 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
