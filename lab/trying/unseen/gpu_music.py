"""A decoder with root mean square norms, rotary places and gated layers, in FP32; its author clips gradients, keeps an
average of the weights and passes arguments by name."""

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NOTES, WIDTH, HEADS, LAYERS, LENGTH, BATCH = (4096, 768, 12, 10, 512, 8) if DEVICE == "cuda" else (64, 32, 2, 2, 16, 2)


def rotated(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


class Norm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale * (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6)).type_as(x)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = Norm(), Norm()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        seen = self.before(x)
        query, key, value = (
            one(seen).unflatten(-1, (HEADS, -1)).transpose(1, 2) for one in (self.query, self.key, self.value)
        )
        found = F.scaled_dot_product_attention(rotated(query, angles), rotated(key, angles), value, is_causal=True)
        x = x + self.out(found.transpose(1, 2).flatten(2))
        seen = self.between(x)
        return x + self.down(F.silu(self.gate(seen)) * self.up(seen))


class Composer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.notes, self.norm = nn.Embedding(NOTES, WIDTH), Norm()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        turns = 10_000 ** -torch.linspace(0, 1, WIDTH // HEADS // 2)
        self.register_buffer("angles", torch.arange(LENGTH)[:, None] * turns)

    def forward(self, notes: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        x = self.notes(notes)
        for layer in self.layers:
            x = layer(x, angles=self.angles)
        return F.cross_entropy((self.norm(x) @ self.notes.weight.T).flatten(0, 1), targets.flatten())


def main() -> None:
    torch.manual_seed(0)
    model = Composer().to(DEVICE)
    average = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=None, avg_fn=lambda a, b, _: 0.99 * a + 0.01 * b)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-4, (0.9, 0.95))
    while True:
        notes = torch.randint(NOTES, (BATCH, LENGTH + 1), device=DEVICE)
        loss = model(notes=notes[:, :-1], targets=notes[:, 1:])
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        average.update_parameters(model)


if __name__ == "__main__":
    main()
