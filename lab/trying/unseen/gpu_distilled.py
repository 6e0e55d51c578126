"""A small residual network learns from a large one of torchvision; SGD with weights decayed in two groups."""

import torch
import torchvision
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
BATCH, SIZE, HEAT = (64, 160, 4.0) if DEVICE == "cuda" else (2, 64, 4.0)


def main() -> None:
    torch.manual_seed(0)
    teacher = torchvision.models.resnet50(num_classes=200).to(DEVICE).eval().requires_grad_(False)
    student = torchvision.models.resnet18(num_classes=200).to(DEVICE)
    large = [one for one in student.parameters() if one.ndim > 1]
    small = [one for one in student.parameters() if one.ndim <= 1]
    groups: list[dict[str, object]] = [{"params": large, "weight_decay": 5e-4}, {"params": small}]
    optimizer = torch.optim.SGD(groups, 0.05, 0.9, nesterov=True)
    images = torch.rand(4 * BATCH, 3, SIZE, SIZE, device=DEVICE)
    kinds = torch.randint(200, (4 * BATCH,), device=DEVICE)
    while True:
        for rows in torch.randperm(4 * BATCH, device=DEVICE).split(BATCH):
            with torch.no_grad():
                wanted = teacher(images[rows]) / HEAT
            found = student(images[rows])
            soft = F.kl_div(
                (found / HEAT).log_softmax(1), wanted.log_softmax(1), reduction="batchmean", log_target=True
            )
            loss = 0.7 * HEAT**2 * soft + 0.3 * nn.functional.cross_entropy(found, kinds[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
