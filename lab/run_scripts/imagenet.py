"""An image classification training as in PyTorch's and torchvision's references: epochs, validation, meters.

Under torchrun it trains with DistributedDataParallel. Images are made up.

python lab/run_scripts/imagenet.py --epochs 2 --batch-size 8
torchrun --nproc-per-node 2 lab/run_scripts/imagenet.py
"""

from __future__ import annotations

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class FakeImages(Dataset[tuple[Tensor, int]]):
    """Random images, the same for the same index."""

    def __init__(self, length: int, side: int, classes: int) -> None:
        self.length, self.side, self.classes = length, side, classes

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        if index >= self.length:
            raise IndexError(index)
        generator = torch.Generator().manual_seed(index)
        return torch.randn(3, self.side, self.side, generator=generator), index % self.classes


class BasicBlock(nn.Module):
    """Two convolutions and a shortcut."""

    def __init__(self, inside: int, outside: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inside, outside, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outside)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outside, outside, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outside)
        self.downsample = nn.Sequential(nn.Conv2d(inside, outside, 1, stride, bias=False), nn.BatchNorm2d(outside))

    def forward(self, x: Tensor) -> Tensor:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        result: Tensor = self.relu(out + self.downsample(x))
        return result


class ResNet(nn.Module):
    """A ResNet of four blocks."""

    def __init__(self, width: int, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.layer1 = BasicBlock(width, width, 1)
        self.layer2 = BasicBlock(width, 2 * width, 2)
        self.layer3 = BasicBlock(2 * width, 4 * width, 2)
        self.layer4 = BasicBlock(4 * width, 8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(8 * width, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        result: Tensor = self.fc(torch.flatten(self.avgpool(x), 1))
        return result


class AverageMeter:
    """A running mean."""

    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def update(self, value: float, n: int = 1) -> None:
        """Add ``n`` times ``value``."""
        self.total += value * n
        self.count += n

    @property
    def mean(self) -> float:
        """So far."""
        return self.total / max(1, self.count)


def train_one_epoch(
    model: nn.Module,
    criterion: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[tuple[Tensor, Tensor]],
    device: torch.device,
    epoch: int,
    args: argparse.Namespace,
) -> None:
    """One pass over the training images."""
    model.train()
    losses, seconds = AverageMeter(), AverageMeter()
    end = time.time()
    for i, (image, target) in enumerate(loader):
        image, target = image.to(device, non_blocking=True), target.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=args.amp):
            loss = criterion(model(image), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), image.size(0))
        seconds.update(time.time() - end)
        end = time.time()
        if i % args.print_freq == 0 and args.rank == 0:
            print(f"Epoch: [{epoch}] [{i}/{len(loader)}] loss {losses.mean:.6f}", flush=True)


@torch.no_grad()
def evaluate(
    model: nn.Module, loader: DataLoader[tuple[Tensor, Tensor]], device: torch.device, args: argparse.Namespace
) -> None:
    """One pass over the validation images."""
    model.eval()
    correct = AverageMeter()
    for image, target in loader:
        prediction = model(image.to(device)).argmax(1).cpu()
        correct.update(float((prediction == target).float().mean()), len(target))
    if args.rank == 0:
        print(f"Test: Acc@1 {100 * correct.mean:.3f}", flush=True)


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batches", type=int, default=14, help="of one epoch")
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--width", type=int, default=8)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--print-freq", type=int, default=5)
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--save")
    args = parser.parse_args()

    args.rank, world = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0))) if torch.cuda.is_available() else "cpu"
    device = torch.device(device)
    if world > 1:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    torch.manual_seed(0)
    model: nn.Module = ResNet(args.width, 10).to(device)
    saved = model
    if world > 1:
        model = nn.parallel.DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)
    train = FakeImages(args.batches * args.batch_size * world, args.side, 10)
    val = FakeImages(4 * args.batch_size, args.side, 10)
    sampler: DistributedSampler[tuple[Tensor, int]] | None = None
    if world > 1:
        sampler = DistributedSampler(train, shuffle=True)
    train_loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(
        train,  # type: ignore[arg-type]
        batch_size=args.batch_size,
        shuffle=sampler is None,
        sampler=sampler,
        num_workers=args.workers,
        pin_memory=device.type == "cuda",
    )
    val_loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(val, batch_size=args.batch_size)  # type: ignore[arg-type]
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4)
    scheduler = StepLR(optimizer, step_size=30, gamma=0.1)
    for epoch in range(args.epochs):
        if sampler is not None:
            sampler.set_epoch(epoch)
        train_one_epoch(model, criterion, optimizer, train_loader, device, epoch, args)
        evaluate(model, val_loader, device, args)
        scheduler.step()
    if args.save and args.rank == 0:
        torch.save(saved.state_dict(), args.save)
    if world > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
