"""Energies of molecules by messages between atoms; graphs of different sizes are put together in the loader, and
gradients are set to zero, and not to None."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset

KINDS, WIDTH, BATCH = 12, 96, 24


class Molecules(Dataset):
    def __len__(self) -> int:
        return 3000

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        draw = torch.Generator().manual_seed(index)
        count = int(torch.randint(12, 40, (1,), generator=draw))
        places = 3 * torch.rand(count, 3, generator=draw)
        kinds = torch.randint(KINDS, (count,), generator=draw)
        first, second = (torch.cdist(places, places) < 1.2).fill_diagonal_(False).nonzero(as_tuple=True)
        return kinds, places, torch.stack([first, second])


def joined(rows: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]) -> tuple[torch.Tensor, ...]:
    kinds, places, pairs = zip(*rows, strict=True)
    starts = torch.tensor([0, *(len(one) for one in kinds)]).cumsum(0)
    bonds = torch.cat([one + start for one, start in zip(pairs, starts, strict=False)], 1)
    graph = torch.arange(len(rows)).repeat_interleave(starts.diff())
    return torch.cat(kinds), torch.cat(places), bonds, graph


class Energy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Embedding(KINDS, WIDTH)
        self.messages = nn.ModuleList(nn.Linear(2 * WIDTH + 16, WIDTH) for _ in range(4))
        self.updates = nn.ModuleList(nn.GRUCell(WIDTH, WIDTH) for _ in range(4))
        self.head = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 1))

    def forward(
        self, kinds: torch.Tensor, places: torch.Tensor, bonds: torch.Tensor, graph: torch.Tensor
    ) -> torch.Tensor:
        first, second = bonds
        far = (places[first] - places[second]).norm(dim=1, keepdim=True)
        far = torch.exp(-10 * (far - torch.linspace(0, 1.2, 16)).square())
        atoms = self.kinds(kinds)
        for message, update in zip(self.messages, self.updates, strict=True):
            sent = F.silu(message(torch.cat([atoms[first], atoms[second], far], 1)))
            atoms = update(torch.zeros_like(atoms).index_add(0, second, sent), atoms)
        return torch.zeros(BATCH).index_add(0, graph, self.head(atoms).squeeze(1))


def main() -> None:
    torch.manual_seed(0)
    model = Energy()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-4)
    while True:
        for kinds, places, bonds, graph in DataLoader(Molecules(), BATCH, True, collate_fn=joined, drop_last=True):
            wanted = torch.zeros(BATCH).index_add(0, graph, kinds / KINDS - 0.5)
            loss = F.l1_loss(model(kinds, places, bonds, graph), wanted)
            optimizer.zero_grad(set_to_none=False)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
