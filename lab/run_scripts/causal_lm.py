"""A small GPT: gradient accumulation, clipping, a cosine schedule, weight decay for matrices only.

python lab/run_scripts/causal_lm.py --steps 24
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Causal attention and an MLP, normalised before each."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        n, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(n, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(n, t, c))
        result: Tensor = x + self.mlp(self.norm2(x))
        return result


class Gpt(nn.Module):
    """Tokens in, logits of the next ones out."""

    def __init__(self, words: int, tokens: int, width: int, layers: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.blocks = nn.Sequential(*(Block(width, width // 64) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        result: Tensor = self.head(self.norm(self.blocks(x)))
        return result


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--steps", type=int, default=24, help="optimizer steps")
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=256)
    parser.add_argument("--width", type=int, default=512)
    parser.add_argument("--layers", type=int, default=6)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Gpt(8192, args.tokens, args.width, args.layers).to(device)
    matrices = [one for one in model.parameters() if one.dim() > 1]
    others = [one for one in model.parameters() if one.dim() <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-4, betas=(0.9, 0.95))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    text = torch.randint(8192, (1 << 20,), generator=torch.Generator().manual_seed(1))
    for step in range(args.steps):
        optimizer.zero_grad()
        total = 0.0
        for _ in range(args.accumulate):
            starts = torch.randint(len(text) - args.tokens - 1, (args.batch_size,)).tolist()
            ids = torch.stack([text[s : s + args.tokens] for s in starts]).to(device)
            targets = torch.stack([text[s + 1 : s + 1 + args.tokens] for s in starts]).to(device)
            loss = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten()) / args.accumulate
            loss.backward()
            total += loss.item()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
        if step % 10 == 0:
            print(f"step {step} loss {total:.6f}", flush=True)


if __name__ == "__main__":
    main()
