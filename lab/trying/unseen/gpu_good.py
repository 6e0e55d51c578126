"""A compiled encoder in BF16 with fused attention and a fused optimizer: little is left to gain."""

import torch
from torch import nn

WIDTH, LENGTH, BATCH = 1024, 512, 32


def main() -> None:
    torch.manual_seed(0)
    torch.set_float32_matmul_precision("high")
    layer = nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, dropout=0.0, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False).cuda()
    model.compile()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    x = torch.randn(BATCH, LENGTH, WIDTH, device="cuda")
    while True:
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = model(x).float().square().mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
