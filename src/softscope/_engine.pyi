"""softscope's compiled kernels; see engine/. Checked by the caller: these only refuse what would crash."""

from typing import Any

def isa() -> str:
    """The instruction set whose kernels were chosen at import; SOFTSCOPE_ISA forces a lower one."""

def isas() -> list[str]:
    """The instruction sets that this build has and this processor runs, lowest first."""

def softmax(x: Any, out: Any, temperature: Any, brain: bool, threads: int) -> None:
    """Write the softmax of x/T, rows on the last axis, into out, which may be x itself."""

def log_softmax(x: Any, out: Any, temperature: Any, brain: bool, threads: int) -> None:
    """Write its logarithm."""

def entmax(x: Any, out: Any, numbers: Any, brain: bool, threads: int) -> None:
    """Write sparse weights; numbers: T and alpha, (2,) for all rows or (…, 2) for each."""

def logsumexp(x: Any, out: Any, temperature: Any, brain: bool, threads: int) -> None:
    """Write log Σ exp(x/T), one number a row."""

def state(x: Any, out: Any, temperature: Any, brain: bool, threads: int) -> None:
    """Write n, c, m, r, u, t, w of each row into out (…, 7)."""

def softmax_at(x: int, out: int, rows: int, n: int, dtype: int, temperature: float, threads: int) -> None:
    """softmax of contiguous rows at an address; dtype counts float16, bfloat16, float32, float64."""

def log_softmax_at(x: int, out: int, rows: int, n: int, dtype: int, temperature: float, threads: int) -> None:
    """log_softmax in the same way."""

def logsumexp_at(x: int, out: int, rows: int, n: int, dtype: int, temperature: float, threads: int) -> None:
    """logsumexp in the same way."""

def jacobian_product(x: Any, y: Any, out: Any, numbers: Any, brain: bool, threads: int) -> None:
    """Write J·y/T at the weights x into out, which may be either; numbers (…, 2) holds T and α of each row."""

def log_softmax_backward(x: Any, y: Any, out: Any, numbers: Any, brain: bool, threads: int) -> None:
    """Write (y − exp(x)·Σy)/T, x the logarithms of weights, into out, which may be either."""

def scaled_weights(x: Any, out: Any, numbers: Any, brain: bool, threads: int) -> None:
    """Write a·exp((x − m)/T)/z + b into out, which may be x; numbers (…, 5) holds T, m, z, a, b of each row."""

class AttentionOptions:
    """How queries see keys, as the engine holds it; see `softscope._arguments.attention.Options`."""

    def __init__(
        self, *, scale: Any, positions: Any, left: int, right: int, mask: Any, brain_mask: bool, softcap: float,
        sink: Any,
    ) -> None: ...  # fmt: skip

def attention(
    q: Any, k: Any, v: Any, *, out: Any, state: Any, options: AttentionOptions, brain: bool, statistics: bool,
    threads: int,
) -> None:  # fmt: skip
    """Write the output and the states of attention: see `_backends.engine.attention.run`, which alone calls it."""

Placed = tuple[int, int, int, int]

def attention_at(
    q: Placed, k: Placed, v: Placed, out: Placed, sizes: tuple[int, int, int, int, int, int, int], scale: float,
    start: int, causal: bool, dtype: int, threads: int, /,
) -> None:  # fmt: skip
    """Attention of tensors, each an address and its first three strides; sizes: batch, heads, kv_heads, n, m, d, dv."""

def attention_backward(
    q: Any, k: Any, v: Any, *, out: Any, state: Any, grad: Any, dq: Any, dk: Any, dv: Any, dscale: Any,
    options: AttentionOptions, brain: bool, threads: int,
) -> None:  # fmt: skip
    """Write its gradients: see `_backends.engine.attention.run_backward`."""

def sparse_attention(
    q: Any, k: Any, v: Any, *, alpha: Any, out: Any, numbers: Any, options: AttentionOptions, brain: bool,
    statistics: bool, threads: int,
) -> None:  # fmt: skip
    """Write the output and the numbers of sparse attention: see `_backends.engine.sparse_attention.run`."""

def sparse_attention_backward(
    q: Any, k: Any, v: Any, *, alpha: Any, numbers: Any, grad: Any, dq: Any, dk: Any, dv: Any, dscale: Any,
    dalpha: Any, options: AttentionOptions, brain: bool, threads: int,
) -> None:  # fmt: skip
    """Write its gradients: see `_backends.engine.sparse_attention.run_backward`."""

def read_attention(
    q: Any, k: Any, v: Any, grad: Any, *, key_lengths: Any, numbers: Any, weights: Any, options: AttentionOptions,
    brain: bool, threads: int,
) -> None:  # fmt: skip
    """Write the reading of every row, and its weights: see `_backends.engine.attention.run_reading`."""
