"""A small Llama of Hugging Face in FP32 that recomputes its layers, though its memory would do; it encodes first."""

import random

import torch
from transformers import LlamaConfig, LlamaForCausalLM

BATCH, LENGTH, TEXTS = 8, 512, 400


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    pairs: dict[tuple[int, int], int] = {}
    texts = []
    for _ in range(TEXTS):
        # Pairs of bytes become words, as a byte pair encoding in Python does it.
        found = random.choices(range(256), weights=[1 / (one + 1) for one in range(256)], k=4 * LENGTH)
        while len(found) > LENGTH:
            found = [
                pairs.setdefault((one, two), 256 + len(pairs) % 15_000)
                for one, two in zip(found[::2], found[1::2], strict=True)
            ]
        texts.append(found)
    tokens = torch.tensor(texts)
    config = LlamaConfig(
        vocab_size=16_000, hidden_size=768, intermediate_size=2048, num_hidden_layers=8, num_attention_heads=12,
        use_cache=False,
    )  # fmt: skip
    model = LlamaForCausalLM(config).cuda()
    model.gradient_checkpointing_enable()
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.1)
    while True:
        for first in range(0, TEXTS - BATCH, BATCH):
            batch = tokens[first : first + BATCH].cuda()
            loss = model(input_ids=batch, labels=batch).loss
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    main()
