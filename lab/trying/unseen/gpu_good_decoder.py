"""A decoder that is as fast as its author knows: BF16, compiled, fused AdamW, batches on the GPU."""

import torch
from torch import nn
from torch.nn import functional as F

WORDS, WIDTH, LENGTH, BATCH = 8192, 768, 512, 24


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.norm_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(self.norm(x)).unflatten(-1, (3, 12, 64)).permute(2, 0, 3, 1, 4)
        found = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.layers = nn.Embedding(WORDS, WIDTH), nn.Sequential(*(Layer() for _ in range(6)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.layers(self.words(words))))


def main() -> None:
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    decoder = Decoder().cuda()
    model = torch.compile(decoder)
    optimizer = torch.optim.AdamW(decoder.parameters(), lr=3e-4, fused=True)
    text = torch.randint(WORDS, (400, LENGTH + 1), device="cuda")
    while True:
        words = text[torch.randint(400, (BATCH,), device="cuda")]
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(words[:, :-1]).flatten(0, 1), words[:, 1:].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
