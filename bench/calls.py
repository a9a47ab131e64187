"""What does a call cost beyond its kernel, on CPU tensors and NumPy arrays, without autograd and with it?

    .venv/bin/python bench/calls.py [--quick] [--only WORD …]

Unit: microseconds, the best of many turns in one interleaved run. "kernel" is the engine's binding called directly,
with its arguments prepared: addresses, shapes and results that exist already. "added" is ours minus the kernel: the
checks, the choice of a path, and making the result. For a backward pass, "ours" is `torch.autograd.grad` of a graph
that is there already. PyTorch's own engine takes most of that time, whatever the function: "added" leaves out what it
takes for its cheapest function (neg). Results are checked before they are timed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from harness import best, machine, parser
from scipy import special
from torch.nn import functional

import softscope as ss
import softscope.nn
from softscope import _engine
from softscope._backends.engine.quick import READINGS

Function = Callable[[], Any]


@dataclass
class Call:
    """One public call, what it computes with, and who else offers it."""

    name: str
    ours: Function
    kernel: Function | None
    others: dict[str, Function]
    autograd: bool = False
    backward: bool = False


KEPT: list[torch.Tensor] = []


def address(x: torch.Tensor) -> int:
    """Where a tensor lies; it is kept, because whoever has the address does not keep it."""
    KEPT.append(x)
    return x.data_ptr()


def rows_at(x: Any) -> tuple[int, int, int]:
    return x.size // x.shape[-1] if isinstance(x, np.ndarray) else x.numel() // x.shape[-1], x.shape[-1], 2


def maps() -> list[Call]:
    """The maps and logsumexp of ten numbers, as tensor and as array."""
    t = torch.randn(10)
    a = t.numpy().copy()
    calls = []
    for name in ("softmax", "log_softmax", "logsumexp"):
        ours, at, theirs = getattr(ss, name), getattr(_engine, f"{name}_at"), getattr(torch, name)
        scipys, out = getattr(special, name), np.empty(10 if name != "logsumexp" else 1, np.float32)
        held = torch.empty(10)
        x, y = address(t), address(held)
        kernel = bound(at, x, y, (1, 10, 2), 1.0, 2)
        calls += [
            Call(f"{name}, tensor of 10", bound(ours, t), kernel, {"torch": bound(theirs, t, -1)}),
            Call(f"{name}, tensor of 10, T = 2", bound(ours, t, temperature=2), kernel, {}),
            Call(
                f"{name}, array of 10",
                bound(ours, a),
                bound(at, a, out, (1, 10, 2), 1.0, 2),
                {"scipy": bound(scipys, a)},
            ),
        ]
    held, out = torch.empty(10), np.empty(10, np.float32)
    for alpha in (1.5, 2.0):
        calls += [
            Call(f"entmax({alpha}), tensor of 10", bound(ss.entmax, t, alpha),
                 bound(_engine.entmax_at, address(t), address(held), (1, 10, 2), 1.0, alpha, 2), {}),
            Call(f"entmax({alpha}), array of 10", bound(ss.entmax, a, alpha),
                 bound(_engine.entmax_at, a, out, (1, 10, 2), 1.0, alpha, 2), {}),
        ]  # fmt: skip
    gaps, rows = np.stack([a, a], axis=-1)[:, 0], np.stack([a] * 4)
    calls += [
        Call("softmax, array of 10 with gaps", bound(ss.softmax, gaps),
             bound(_engine.softmax, gaps, out, 1.0, False, 2), {"scipy": bound(special.softmax, gaps)}),
        Call("softmax, array 10 × 4 along axis 0", bound(ss.softmax, rows.T, axis=0),
             bound(_engine.softmax_at, rows, np.empty_like(rows), (4, 10, 2), 1.0, 2),
             {"scipy": bound(special.softmax, rows.T, axis=0)}),
    ]  # fmt: skip
    p, v = torch.softmax(t, -1), torch.randn(10)
    product = bound(_engine.jacobian_product_at, address(p), address(v), address(held), (1, 10, 2), 1.0, 1.0, 2)
    theirs = bound(torch._softmax_backward_data, v, p, -1, torch.float32)
    calls.append(Call("jacobian_product, tensor of 10", bound(ss.jacobian_product, p, v), product, {"torch": theirs}))
    pa, va = p.numpy(), v.numpy()
    product = bound(_engine.jacobian_product_at, pa, va, out, (1, 10, 2), 1.0, 1.0, 2)
    calls.append(Call("jacobian_product, array of 10", bound(ss.jacobian_product, pa, va), product, {}))
    return calls


def partitions() -> list[Call]:
    """The partition of ten numbers, and what reading it costs."""
    t = torch.randn(10)
    a, numbers, held = t.numpy().copy(), np.empty(7), torch.empty(7, dtype=torch.float64)
    calls = [
        Call("partition, tensor of 10", bound(ss.partition, t),
             bound(_engine.state_at, address(t), address(held), (1, 10, 2), 1.0, 2), {}),
        Call("partition, array of 10", bound(ss.partition, a),
             bound(_engine.state_at, a, numbers, (1, 10, 2), 1.0, 2), {}),
    ]  # fmt: skip
    calls[0].kernel(), calls[1].kernel()  # the states that are read
    found, one = np.empty(()), torch.empty((), dtype=torch.float64)
    for kind, x, state, out in (("tensor", t, address(held), address(one)), ("array", a, numbers, found)):
        p = ss.partition(x)
        calls += [Call(f"… reading {name}, {kind}", lambda p=p, name=name: getattr(p, name),
                       bound(_engine.reading_at, state, out, (1, 7, 3), i, 1.0, 0, 2), {})
                  for name, i in READINGS.items()]  # fmt: skip
    return calls


def cross_entropies() -> list[Call]:
    """cross_entropy of one row, of a small and of a middling batch."""
    calls = []
    for shape in ((10,), (32, 10), (256, 1000)):
        x, y = torch.randn(shape), torch.randint(0, shape[-1], shape[:-1])
        out, loss = torch.empty(()), (-100, 0.0, 2)
        text = " × ".join(map(str, shape))
        kernel = bound(_engine.cross_entropy_at, address(x), address(y), rows_at(x), loss, 1.0, 0, address(out), 0, 2)
        calls.append(Call(f"cross_entropy, tensor {text}", bound(ss.cross_entropy, x, y), kernel,
                          {"torch": bound(functional.cross_entropy, x, y)}))  # fmt: skip
        a, b, c = x.numpy(), y.numpy(), np.empty((), np.float32)
        kernel = bound(_engine.cross_entropy_at, a, b, rows_at(a), loss, 1.0, 0, c, 0, 2)
        calls.append(Call(f"cross_entropy, array {text}", bound(ss.cross_entropy, a, b), kernel, {}))
    return calls


def others() -> list[Call]:
    """What else has a kernel of its own."""
    t, teacher = torch.randn(32, 10), torch.randn(32, 10)
    a, b = t.numpy(), teacher.numpy()
    rng, generator = np.random.default_rng(0), torch.Generator()
    index, uniform, found = np.empty((), np.int64), np.array(0.5), np.empty(1)
    loss = bound(_engine.distillation_at, a, b, np.empty((), np.float32), (32, 10, 2), 2.0, 0, 2)
    draw = bound(_engine.sample_at, a[0], index, (1, 10, 2), 1.0, 0, (10, 0.0, 0.0), uniform, 2)
    search = bound(_engine.temperature_for_at, a[0], found, (1, 10, 2), False, 1.0, 0, 2)
    return [
        Call("distillation_loss, tensor 32 × 10", bound(ss.distillation_loss, t, teacher, temperature=2.0), loss, {}),
        Call("distillation_loss, array 32 × 10", bound(ss.distillation_loss, a, b, temperature=2.0), loss, {}),
        Call("sample, tensor of 10", bound(ss.sample, t[0], rng=generator), draw,
             {"torch": lambda: torch.multinomial(torch.softmax(t[0], -1), 1, generator=generator)}),
        Call("sample, array of 10", bound(ss.sample, a[0], rng=rng), draw, {}),
        Call("temperature_for, tensor of 10", bound(ss.temperature_for, t[0], entropy=1.0), search, {}),
        Call("temperature_for, array of 10", bound(ss.temperature_for, a[0], entropy=1.0), search, {}),
    ]  # fmt: skip


def attentions() -> list[Call]:
    """Attention of one query, as in decoding, with the options that models use."""
    q, k, v = torch.randn(1, 4, 1, 32), torch.randn(1, 4, 128, 32), torch.randn(1, 4, 128, 32)
    shown, added = torch.ones(1, 1, 1, 128, dtype=torch.bool), torch.zeros(1, 1, 1, 128)
    sdpa, ours = functional.scaled_dot_product_attention, softscope.nn.scaled_dot_product_attention
    calls = []
    for name, options, mask in (("", {}, None), (", boolean mask", {"attn_mask": shown}, shown),
                                (", additive mask", {"attn_mask": added}, added)):  # fmt: skip
        theirs = {"torch": bound(sdpa, q, k, v, **options)}
        calls.append(Call(f"nn.scaled_dot_product_attention, 1 × 128{name}", bound(ours, q, k, v, **options),
                          attention_kernel(q, k, v, mask), theirs))  # fmt: skip
    few, fewer = k[:, :2].contiguous(), v[:, :2].contiguous()
    calls += [
        Call("attention, 1 × 128, grouped", bound(ss.attention, q, few, fewer),
             attention_kernel(q, few, fewer, None), {}),
        Call("attention, 1 × 128, window", bound(ss.attention, q, k, v, window=(64, 0), query_start=127),
             attention_kernel(q, k, v, None, start=127, left=64, right=0), {}),
        Call("attention, 1 × 128, partition", bound(ss.attention, q, k, v, return_partition=True),
             attention_kernel(q, k, v, None, statistics=True), {}),
        Call("attention_partition, 1 × 128", bound(ss.attention_partition, q, k),
             attention_kernel(q, k, None, None), {}),
    ]  # fmt: skip
    a = [x.numpy() for x in (q, k, v)]
    calls += [
        Call("attention, 1 × 128, arrays", bound(ss.attention, *a), attention_kernel(q, k, v, None), {}),
        Call("attention, 1 × 128, arrays, boolean mask", bound(ss.attention, *a, mask=shown.numpy()),
             attention_kernel(q, k, v, shown), {}),
        Call("attention_partition, 1 × 128, arrays", bound(ss.attention_partition, *a[:2]),
             attention_kernel(q, k, None, None), {}),
    ]  # fmt: skip
    return calls


def attention_kernel(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor | None, mask: Any, start: int = 0, left: int = 1 << 60,
    right: int = 1 << 60, statistics: bool = False,
) -> Function:  # fmt: skip
    """Without values, the kernel computes the statistics alone."""
    dv = 0 if v is None else v.shape[3]
    out = torch.empty((*q.shape[:-1], dv))
    state = torch.empty((*q.shape[:-1], 8), dtype=torch.float64)
    statistics = statistics or v is None
    sizes = (*q.shape[:2], k.shape[1], q.shape[2], k.shape[2], q.shape[3], dv)
    kind = None if mask is None else (address(mask), 0, 0, 0, 1, 4 if mask.dtype == torch.bool else 2)
    view = (q.shape[-1] ** -0.5, 0.0, start, left, right, kind)
    values, to = ((0, 0, 0, 0), 0) if v is None else (placed(v), address(out))
    return bound(_engine.attention_at, placed(q), placed(k), values, to, address(state) if statistics else 0,
                 sizes, view, statistics, 2, 2)  # fmt: skip


def placed(x: torch.Tensor) -> tuple[int, ...]:
    return (address(x), *x.stride()[:3])


def gradients() -> list[Call]:
    """With autograd: the forward call that records, and the backward call."""
    calls = []
    pull = torch.randn(10)
    for name in ("softmax", "log_softmax", "logsumexp", "entmax"):
        ours = getattr(ss, name)
        theirs = getattr(torch, name, None)
        leaf, held = torch.randn(10, requires_grad=True), torch.empty(10)
        x, out, g = address(leaf.detach()), address(held), address(pull)
        one = (1, 10, 2)
        forward = {
            "entmax": bound(_engine.entmax_at, x, out, one, 1.0, 1.5, 2),
        }.get(name) or bound(getattr(_engine, f"{name}_at"), x, out, one, 1.0, 2)
        back = {
            "log_softmax": bound(_engine.log_softmax_backward_at, x, g, out, one, 1.0, 1.0, 2),
            "logsumexp": bound(_engine.softmax_at, x, out, one, 1.0, 2),
        }.get(name) or bound(_engine.jacobian_product_at, x, g, out, one, 1.0, 1.5 if name == "entmax" else 1.0, 2)
        pulled = torch.tensor(1.0) if name == "logsumexp" else pull
        calls += both(f"{name} of 10", ours, forward, back, theirs and (lambda z, f=theirs: f(z, -1)), leaf, pulled)
    for shape in ((32, 10), (256, 1000)):
        leaf, y = torch.randn(shape, requires_grad=True), torch.randint(0, shape[-1], shape[:-1])
        x, out, slope, sums = (
            leaf.detach(),
            torch.empty(()),
            torch.empty(shape),
            torch.empty(shape[0], 2, dtype=torch.float64),
        )
        one, loss = torch.ones(()), (-100, 0.0, 2)
        forward = bound(_engine.cross_entropy_at, address(x), address(y), rows_at(x), loss, 1.0, 0, address(out),
                        address(sums), 2)  # fmt: skip
        back = bound(_engine.cross_entropy_backward_at, address(x), address(y), rows_at(x), loss, 1.0, 0,
                     address(one), address(sums), address(slope), 2)  # fmt: skip
        calls += both(f"cross_entropy {shape[0]} × {shape[1]}", lambda z, y=y: ss.cross_entropy(z, y), forward, back,
                      lambda z, y=y: functional.cross_entropy(z, y), leaf, one)  # fmt: skip
    return calls + attention_gradients()


def attention_gradients() -> list[Call]:
    q, k, v = (torch.randn(1, 4, 16, 32, requires_grad=True) for _ in range(3))
    held = [torch.empty(1, 4, 16, 32) for _ in range(4)]
    pull, state = torch.randn(1, 4, 16, 32), torch.empty(1, 4, 16, 8, dtype=torch.float64)
    sizes, view = (1, 4, 4, 16, 16, 32, 32), (32**-0.5, 0.0, 0, 1 << 60, 0, None)
    at = [placed(x.detach()) for x in (q, k, v)]
    forward = bound(_engine.attention_at, *at, address(held[0]), address(state), sizes, view, False, 2, 2)
    back = bound(_engine.attention_backward_at, *at, placed(held[0]), placed(pull), address(state),
                 tuple(address(x) for x in held[1:]), sizes, view, 2, 2)  # fmt: skip
    return both("attention 16 × 16, causal", lambda *z: ss.attention(*z, causal=True), forward, back,
                lambda *z: functional.scaled_dot_product_attention(*z, is_causal=True), (q, k, v), pull)  # fmt: skip


def both(
    name: str,
    ours: Any,
    forward: Function,
    back: Function,
    theirs: Any,
    leaves: Any,
    pull: torch.Tensor,
) -> list[Call]:
    leaves = leaves if isinstance(leaves, tuple) else (leaves,)
    forward()  # what the backward kernel reads
    mine = ours(*leaves)

    def pulled(y: torch.Tensor) -> Function:
        return lambda: torch.autograd.grad(y, leaves, pull, retain_graph=True)

    others = {} if theirs is None else {"torch": lambda: theirs(*leaves)}
    backs = {} if theirs is None else {"torch": pulled(theirs(*leaves))}
    if theirs is not None:
        torch.testing.assert_close(mine, theirs(*leaves), rtol=1e-4, atol=1e-5)
        for a, b in zip(pulled(mine)(), backs["torch"](), strict=True):
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)
    return [
        Call(f"{name}, forward", lambda: ours(*leaves), forward, others, autograd=True),
        Call(f"{name}, backward", pulled(mine), back, backs, autograd=True, backward=True),
    ]


def bound(function: Any, *arguments: Any, **named: Any) -> Function:
    return lambda: function(*arguments, **named)


def check(call: Call) -> None:
    """Check that ours agrees with the others, where they compute the same from the same numbers."""
    for function in call.others.values():
        a, b = call.ours(), function()
        if isinstance(a, torch.Tensor | np.ndarray | np.floating) and not call.name.startswith("sample"):
            np.testing.assert_allclose(np.asarray(torch.as_tensor(a).detach()), np.asarray(torch.as_tensor(b).detach()),
                                       rtol=1e-3, atol=1e-4)  # fmt: skip


def floor(turns: int) -> float:
    """What torch.autograd.grad takes for PyTorch's cheapest function."""
    leaf, pull = torch.randn(10, requires_grad=True), torch.randn(10)
    y = -leaf
    return best({"neg": lambda: torch.autograd.grad(y, leaf, pull, retain_graph=True)}, turns, calls=200)["neg"] * 1e6


def main() -> None:
    options = parser(__doc__)
    options.add_argument("--only", nargs="*", default=[], metavar="WORD", help="only calls whose name has one of these")
    given = options.parse_args()
    print(machine())
    turns = 5 if given.quick else 15
    least = floor(turns)
    print(f"\ntorch.autograd.grad of neg takes {least:.1f} µs: the floor of every backward call\n")
    print(f"{'':52}{'ours':>8}{'kernel':>8}{'added':>8}   others")
    worst = {False: ("", 0.0), True: ("", 0.0)}
    for call in [*maps(), *partitions(), *cross_entropies(), *others(), *attentions(), *gradients()]:
        if given.only and not any(word in call.name for word in given.only):
            continue
        if not call.backward:
            check(call)
        contenders = {"ours": call.ours, **call.others} | ({"kernel": call.kernel} if call.kernel else {})
        times = {name: 1e6 * t for name, t in best(contenders, turns, calls=200).items()}
        added = times["ours"] - times.pop("kernel", 0.0) - (least if call.backward else 0.0)
        if call.kernel is not None and added > worst[call.autograd][1]:
            worst[call.autograd] = call.name, added
        kernel = f"{times['ours'] - added - (least if call.backward else 0.0):8.2f}" if call.kernel else f"{'–':>8}"
        rest = "  ".join(f"{name} {t:.2f}" for name, t in times.items() if name != "ours")
        print(f"{call.name:52}{times['ours']:8.2f}{kernel}{added:8.2f}   {rest}", flush=True)
    for autograd, (name, added) in worst.items():
        print(f"\nmost added {'with' if autograd else 'without'} autograd: {added:.2f} µs, {name}")


if __name__ == "__main__":
    main()
