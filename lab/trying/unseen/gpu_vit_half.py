"""A vision transformer of timm that trains in BF16 already, with two groups of parameters, not compiled."""

import timm
import torch
from torch.nn import functional as F

BATCH, CLASSES = 64, 100


def main() -> None:
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = True
    model = timm.create_model("vit_small_patch16_224", num_classes=CLASSES, drop_path_rate=0.1).cuda()
    decayed = [one for one in model.parameters() if one.ndim > 1]
    others = [one for one in model.parameters() if one.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=1e-3)
    images = torch.randint(256, (8 * BATCH, 3, 224, 224), dtype=torch.uint8)
    labels = torch.randint(CLASSES, (8 * BATCH,))
    while True:
        for first in range(0, len(images), BATCH):
            image = images[first : first + BATCH].cuda().float().div_(255)
            label = labels[first : first + BATCH].cuda()
            optimizer.zero_grad()
            with torch.autocast("cuda", torch.bfloat16):
                loss = F.cross_entropy(model(image), label, label_smoothing=0.1)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
