"""A training loop of JAX that records some steps for one profiler, after it has timed steps without any.

    python jax_program.py --kind transformer_fp32 --recorder profiler --out /tmp/out
    nsys profile -c cudaProfilerApi ... python jax_program.py --kind conv_bf16 --recorder nsys --out /tmp/out

A kind that ends with ``_kernels`` turns command buffers (XLA's CUDA graphs) off, so that single kernels are recorded.
"""

from __future__ import annotations

import argparse
import ctypes
import itertools
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

STEPS = 5
TIMED, BLOCKS = 20, 3
KINDS = tuple(
    f"{model}_{dtype}{how}"
    for model in ("transformer", "conv")
    for dtype in ("fp32", "bf16")
    for how in ("", "_kernels")
)


def _transformer(jax: Any, dtype: Any) -> tuple[Any, Any, Callable[..., Any]]:
    jnp, width, layers = jax.numpy, 512, 4
    keys = iter(jax.random.split(jax.random.key(0), 64))

    def matrix(*shape: int) -> Any:
        return jax.random.normal(next(keys), shape, dtype) * 0.02

    blocks = [
        {"qkv": matrix(width, 3 * width), "out": matrix(width, width), "up": matrix(width, 4 * width)}
        | {"down": matrix(4 * width, width)}
        for _ in range(layers)
    ]
    params = {"blocks": blocks, "head": matrix(width, 1024)}
    x = jax.random.normal(next(keys), (16, 128, width), dtype)

    def attention(block: Any, x: Any) -> Any:
        with jax.named_scope("attention"):
            q, k, v = jnp.split((x @ block["qkv"]).reshape(16, 128, 8, -1), 3, axis=-1)
            scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8.0)
            return jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(16, 128, width) @ block["out"]

    def loss(params: Any, x: Any) -> Any:
        for number, block in enumerate(params["blocks"]):
            with jax.named_scope(f"layer_{number}"):
                x = x + attention(block, x)
                with jax.named_scope("mlp"):
                    x = x + jax.nn.gelu(x @ block["up"]) @ block["down"]
        with jax.named_scope("head"):
            return jnp.mean(jnp.square((x @ params["head"]).astype(jnp.float32)))

    return params, x, loss


def _conv(jax: Any, dtype: Any) -> tuple[Any, Any, Callable[..., Any]]:
    jnp = jax.numpy
    keys = iter(jax.random.split(jax.random.key(1), 16))
    widths = [3, 64, 128, 256, 256]
    params = [jax.random.normal(next(keys), (3, 3, a, b), dtype) * 0.05 for a, b in itertools.pairwise(widths)]
    x = jax.random.normal(next(keys), (32, 64, 64, 3), dtype)

    def loss(params: Any, x: Any) -> Any:
        for number, weight in enumerate(params):
            with jax.named_scope(f"conv_{number}"):
                x = jax.nn.relu(
                    jax.lax.conv_general_dilated(x, weight, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                )
        return jnp.mean(jnp.square(x.astype(jnp.float32)))

    return params, x, loss


def main() -> None:
    """Entry point of the script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--recorder", choices=("nsys", "profiler"), required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.kind.endswith("_kernels"):
        os.environ["XLA_FLAGS"] = "--xla_gpu_enable_command_buffer="
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax  # type: ignore[import-not-found]

    model, dtype, *_ = args.kind.split("_")
    make = {"transformer": _transformer, "conv": _conv}[model]
    params, x, loss = make(jax, jax.numpy.bfloat16 if dtype == "bf16" else jax.numpy.float32)

    @jax.jit  # type: ignore[untyped-decorator]
    def train_step(params: Any, x: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, x)
        return jax.tree.map(lambda p, g: p - (1e-3 * g).astype(p.dtype), params, grads), value

    def run(steps: int, annotate: bool = False) -> None:
        nonlocal params
        value = None
        for number in range(steps):
            if annotate:
                with jax.profiler.StepTraceAnnotation("train", step_num=number):
                    params, value = train_step(params, x)
            else:
                params, value = train_step(params, x)
        jax.block_until_ready(value)

    run(5)
    blocks = []
    for _ in range(BLOCKS):
        start = time.perf_counter()
        run(TIMED)
        blocks.append((time.perf_counter() - start) * 1e3 / (TIMED))
    if args.recorder == "nsys":
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cuProfilerStart()
        run(STEPS, annotate=True)
        driver.cuProfilerStop()
    else:
        with jax.profiler.trace(str(args.out)):
            run(STEPS, annotate=True)
    truth = {
        "kind": args.kind,
        "recorder": args.recorder,
        "rank": 0,
        "unprofiled_step_ms": statistics.median(blocks),
        "blocks_ms": blocks,
        "steps": STEPS,
        "jax": jax.__version__,
        "gpu": jax.devices()[0].device_kind,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }
    (args.out / f"truth.{args.recorder}.0.json").write_text(json.dumps(truth, indent=1) + "\n")


if __name__ == "__main__":
    main()
