"""BERT of Hugging Face that classifies texts, in FP32; its start takes long: texts are tokenized."""

import random

import torch
from transformers import BertConfig, BertForSequenceClassification

BATCH, LENGTH, TEXTS, WORDS = 32, 128, 6000, 30000


def main() -> None:
    random.seed(0)
    torch.manual_seed(0)
    vocabulary = {"".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=6)): word for word in range(WORDS)}
    words = list(vocabulary)
    texts = [" ".join(random.choices(words, k=4 * LENGTH)) for _ in range(TEXTS)]
    # A tokenizer in Python: the longest known word at each place.
    encoded = []
    for text in texts:
        ids = []
        for word in text.split():
            found = next((word[:end] for end in range(len(word), 0, -1) if word[:end] in vocabulary), None)
            ids.append(0 if found is None else vocabulary[found])
        encoded.append(ids[:LENGTH])
    tokens = torch.tensor(encoded)
    labels = torch.randint(4, (TEXTS,))
    config = BertConfig(
        num_hidden_layers=8, hidden_size=512, num_attention_heads=8, intermediate_size=2048, num_labels=4
    )
    model = BertForSequenceClassification(config).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=10000)
    while True:
        for first in range(0, TEXTS - BATCH, BATCH):
            batch, classes = tokens[first : first + BATCH].cuda(), labels[first : first + BATCH].cuda()
            optimizer.zero_grad()
            model(input_ids=batch, labels=classes).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()


if __name__ == "__main__":
    main()
