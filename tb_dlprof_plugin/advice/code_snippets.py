"""The code of the changes that rules and forecasts propose."""

FP16 = """scaler = torch.amp.GradScaler("cuda")

for inputs, targets in loader:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = loss_fn(model(inputs), targets)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
"""
BF16 = """for inputs, targets in loader:
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = loss_fn(model(inputs), targets)
    loss.backward()
    optimizer.step()
"""
TF32 = """torch.set_float32_matmul_precision("high")  # TF32 in matrix products
torch.backends.cudnn.allow_tf32 = True       # TF32 in convolutions
"""
