"""How fast is attention with all its statistics, against PyTorch's without any, and how close does it come to sgemm?

    .venv/bin/python bench/attention.py [--quick] [--mkl] [--chart attention.svg]

Unit: ratios. "torch 1.3" means that PyTorch's scaled_dot_product_attention takes 1.3 times as long as ours; "eager 8"
that writing out the weights in PyTorch and computing the same statistics from them takes 8 times as long; "sgemm 0.9"
that we multiply at 0.9 of the rate at which PyTorch multiplies two large matrices. float32 unless stated otherwise. All
take turns in one run, the best of several turns counts, and results are checked before they are timed. --mkl restarts
with Intel's library told that it runs on an Intel processor: on other processors that is PyTorch's best setting.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from harness import Contenders, Ratios, best, finish, machine, parser, shape_name
from torch.nn.functional import scaled_dot_product_attention

import softscope as ss

SHAPES = [(8, 12, 128, 64), (4, 8, 512, 64), (1, 8, 1024, 64), (1, 8, 1024, 80), (1, 8, 1024, 128), (1, 4, 2048, 64),
          (1, 2, 4096, 128), (1, 2, 8192, 64)]  # fmt: skip
CACHES = [(1, 1, 1, 131_072, 64), (1, 8, 8, 16_384, 64), (4, 8, 8, 4096, 64), (1, 32, 8, 4096, 128)]


def sgemm() -> float:
    """Multiplications and additions per second in a large matrix product."""
    x = torch.randn(2048, 2048)
    return 2 * 2048**3 / best({"sgemm": lambda: x @ x}, 10)["sgemm"]


def eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool) -> tuple[torch.Tensor, ...]:
    """Output, lse, entropy, collision, peak and variance, with the weights written out."""
    x = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        x = x.masked_fill(torch.ones(x.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    lse = torch.logsumexp(x, -1)
    p = torch.softmax(x, -1)
    seen = x.masked_fill(x == -torch.inf, 0.0)
    mean = (p * seen).sum(-1)
    variance = (p * (seen - mean[..., None]) ** 2).sum(-1)
    return p @ v, lse, lse - mean, (p * p).sum(-1), p.amax(-1), variance


def operations(shape: tuple[int, ...], causal: bool) -> float:
    b, h, n, d = shape
    return 4.0 * b * h * n * n * d * (0.5 if causal else 1.0)


def forward(shape: tuple[int, ...], causal: bool, dtype: torch.dtype) -> Contenders:
    q, k, v = (torch.randn(shape).to(dtype) for _ in range(3))
    who: Contenders = {
        "ours": lambda: ss.attention(q, k, v, causal=causal, return_partition=True)[0],
        "torch": lambda: scaled_dot_product_attention(q, k, v, is_causal=causal),
    }
    if dtype == torch.float32:
        who["eager"] = lambda: eager(q, k, v, causal)[0]
    agree(who, 1e-5 if dtype == torch.float32 else 3e-2)
    return who


def both_ways(shape: tuple[int, ...], causal: bool) -> Contenders:
    leaves = [torch.randn(shape, requires_grad=True) for _ in range(3)]
    gradient = torch.randn(shape)

    def through(function: object) -> object:
        return lambda: torch.autograd.grad(function(), leaves, gradient)[1]  # type: ignore[operator]

    who: Contenders = {
        "ours": through(lambda: ss.attention(*leaves, causal=causal, return_partition=True)[0]),
        "torch": through(lambda: scaled_dot_product_attention(*leaves, is_causal=causal)),
    }
    agree(who, 1e-4)
    return who


def statistics(shape: tuple[int, ...], causal: bool) -> Contenders:
    q, k, v = (torch.randn(shape) for _ in range(3))
    return {
        "ours": lambda: ss.attention_partition(q, k, causal=causal),
        "SDPA": lambda: scaled_dot_product_attention(q, k, v, is_causal=causal),
    }


def decoding(shape: tuple[int, ...]) -> Contenders:
    b, heads, kv_heads, m, d = shape
    q, k, v = torch.randn(b, heads, 1, d), torch.randn(b, kv_heads, m, d), torch.randn(b, kv_heads, m, d)
    cache = torch.stack([k, v])
    copy = torch.empty_like(cache)
    who: Contenders = {
        "ours": lambda: ss.attention(q, k, v, return_partition=True)[0],
        "torch": lambda: scaled_dot_product_attention(q, k, v, enable_gqa=heads != kv_heads),
    }
    agree(who, 1e-5)
    # A copy reads and writes: reading the same bytes alone would take half the time.
    return who | {"copy": lambda: copy.copy_(cache)}


def agree(who: Contenders, tolerance: float) -> None:
    """Check that everything timed gives the right result."""
    results = [function() for function in who.values()]
    for other in results[1:]:
        torch.testing.assert_close(results[0], other, rtol=tolerance, atol=tolerance)


def with_mkl_told() -> None:
    """Rerun this program with Intel's library told that the processor is Intel's."""
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "told.c"), Path(folder, "told.so")
        source.write_text("int mkl_serv_intel_cpu_true(void) { return 1; }\n", encoding="utf-8")
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
        again = [sys.executable, *(word for word in sys.argv if word != "--mkl")]
        sys.exit(subprocess.run(again, env=os.environ | {"LD_PRELOAD": str(library)}, check=False).returncode)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--mkl", action="store_true", help="restart with MKL's best setting")
    chosen = options.parse_args()
    print(machine())
    if chosen.mkl:
        with_mkl_told()
    torch.set_num_threads(ss.get_num_threads())
    rate = sgemm()
    print(f"sgemm {rate / 1e9:.0f} GF/s on {ss.get_num_threads()} threads\n")
    ratios = Ratios("Attention with all statistics", limits=("copy", "sgemm"))
    turns = 3 if chosen.quick else 9
    for shape in SHAPES[::3] if chosen.quick else SHAPES:
        for causal in (False, True):
            name = shape_name(shape)
            kind = "causal" if causal else "full"
            count = operations(shape, causal)
            times = best(forward(shape, causal, torch.float32), turns, slow=("eager",))
            ratios.add(f"forward, {kind}", name, times | {"sgemm": count / rate})
            times = best(both_ways(shape, causal), turns)
            ratios.add(f"both ways, {kind}", name, times | {"sgemm": 3.5 * count / rate})
            ratios.add(f"statistics, {kind}", name, best(statistics(shape, causal), turns))
            ratios.add(f"bfloat16, {kind}", name, best(forward(shape, causal, torch.bfloat16), turns))
    for shape in CACHES:
        times = best(decoding(shape), 3 * turns)
        ratios.add("one query", shape_name(shape), times | {"copy": times["copy"] / 2})
    finish(ratios, chosen.chart)


if __name__ == "__main__":
    main()
