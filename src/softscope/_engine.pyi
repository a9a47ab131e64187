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

# Contiguous arrays, by address or as objects with a buffer.
Memory = Any
RowsAt = tuple[int, int, int]  # how many, their length, and their dtype: float16, bfloat16, float32, float64 are 0 to 3

def softmax_at(x: Memory, out: Memory, rows: RowsAt, temperature: float, threads: int, /) -> None:
    """softmax of contiguous rows."""

def log_softmax_at(x: Memory, out: Memory, rows: RowsAt, temperature: float, threads: int, /) -> None:
    """log_softmax in the same way."""

def logsumexp_at(x: Memory, out: Memory, rows: RowsAt, temperature: float, threads: int, /) -> None:
    """logsumexp in the same way."""

def state_at(x: Memory, out: Memory, rows: RowsAt, temperature: float, threads: int, /) -> None:
    """state in the same way."""

def entmax_at(x: Memory, out: Memory, rows: RowsAt, temperature: float, alpha: float, threads: int, /) -> None:
    """entmax in the same way."""

def jacobian_product_at(
    x: Memory, y: Memory, out: Memory, rows: RowsAt, temperature: float, alpha: float, threads: int, /
) -> None:
    """jacobian_product in the same way."""

def log_softmax_backward_at(
    x: Memory, y: Memory, out: Memory, rows: RowsAt, temperature: float, alpha: float, threads: int, /
) -> None:
    """log_softmax_backward in the same way; alpha is not read."""

def reading_at(
    states: Memory, out: Memory, rows: RowsAt, reading: int, temperature: float, temperatures: Memory, threads: int, /
) -> None:
    """Write one reading of each state, float64 (…, 7 or 8); `_backends.engine.quick.READINGS` numbers them.

    temperatures has one for each row, or is 0.
    """

def temperature_for_at(
    x: Memory, out: Memory, rows: RowsAt, peak: bool, target: float, targets: Memory, threads: int, /
) -> None:
    """Write the temperature, in float64, at which each row has its target: an entropy, or −log of a peak.

    targets has one for each row, or is 0. NaN where no temperature does it.
    """

def distillation_at(
    student: Memory, teacher: Memory, out: Memory, rows: RowsAt, temperature: float, temperatures: Memory,
    threads: int, /,
) -> None:  # fmt: skip
    """Write the rows' mean of T²·KL(teacher‖student) in their dtype; temperatures has one for each row, or is 0."""

def first_without_weights_at(x: Memory, rows: RowsAt, /) -> int:
    """Return the first row from which nothing can be drawn, or their number if there is none."""

def sample_at(
    x: Memory, out: Memory, rows: RowsAt, temperature: float, temperatures: Memory, filters: tuple[int, float, float],
    uniform: Memory, threads: int, /,
) -> None:  # fmt: skip
    """Draw an int64 index from each row, given a number in [0, 1) for each; filters: top_k, top_p, min_p.

    A top_k of the row's length or more, and a top_p or min_p of 0, keep everything. temperatures has one for each row,
    or is 0.
    """

LossAt = tuple[int, float, int]  # ignore_index, label_smoothing, and the reduction: none, sum, mean are 0 to 2

def cross_entropy_at(
    x: Memory, targets: Memory, rows: RowsAt, loss: LossAt, temperature: float, temperatures: Memory, out: Memory,
    sums: int, threads: int, /,
) -> bool:  # fmt: skip
    """Write each loss in float64, or their sum or mean in x's dtype; and into sums, if not 0, each row's m and z − 1.

    temperatures has one for each row, or is 0. False if a target is neither a class nor ignored.
    """

def cross_entropy_backward_at(
    x: Memory, targets: Memory, rows: RowsAt, loss: LossAt, temperature: float, temperatures: Memory, gradient: int,
    sums: int, out: int, threads: int, /,
) -> None:  # fmt: skip
    """Write the gradient of x, given that of each loss in float64, or of their sum or mean in x's dtype."""

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

Placed = tuple[int, int, int, int]  # an address, and the strides of batch, heads and rows
PlacedMask = tuple[int, int, int, int, int, int]  # and that of the keys; then its dtype, bool being 4
Sizes = tuple[int, int, int, int, int, int, int]  # batch, heads, kv_heads, n, m, d, dv
View = tuple[float, float, int, int, int, PlacedMask | None]  # scale, softcap or 0, query_start, left, right, mask

Heads = tuple[Placed, Placed, Placed, Sizes, int]  # q, k, v, and their dtype

def know_tensors(exchange: Any, tensor: type, parameter: type, /) -> None:
    """Learn PyTorch's types, and DLPack's exchange interface to look into them."""

def rows_of(x: object, /) -> tuple[int, RowsAt, int] | None:
    """Return address, rows and number of axes of a plain CPU tensor of contiguous rows; None for anything else."""

def labelled_rows_of(x: object, targets: object, /) -> tuple[int, int, RowsAt] | None:
    """Return both addresses and the rows, if there is a contiguous int64 for each row; None for anything else."""

def heads_of(q: object, k: object, v: object, /) -> Heads | None:
    """Return where q, k, v lie, tensors (batch, heads, n, d), (heads, n, d) or (n, d), if they fit; None for others."""

def queries_of(q: object, k: object, /) -> Heads | None:
    """Return the same without values."""

def mask_of(mask: object, sizes: Sizes, /) -> PlacedMask | None:
    """Return where a boolean or floating mask lies that broadcasts to (batch, heads, n, m); None for anything else."""

def know_arrays(array: type, /) -> None:
    """Learn NumPy's type."""

def array_heads_of(q: object, k: object, v: object, /) -> Heads | None:
    """Return the same as heads_of, for arrays."""

def array_queries_of(q: object, k: object, /) -> Heads | None:
    """Return the same as queries_of, for arrays."""

def array_mask_of(mask: object, sizes: Sizes, /) -> PlacedMask | None:
    """Return the same as mask_of, for arrays."""

def attention_at(
    q: Placed, k: Placed, v: Placed, out: Memory, state: Memory, sizes: Sizes, view: View, statistics: bool, dtype: int,
    threads: int, /,
) -> None:  # fmt: skip
    """Attention of tensors or arrays; state is memory for 8 numbers of each row, or 0. Without values, out is 0."""

def attention_backward_at(
    q: Placed, k: Placed, v: Placed, out: Placed, grad: Placed, state: int, gradients: tuple[int, int, int],
    sizes: Sizes, view: View, dtype: int, threads: int, /,
) -> None:  # fmt: skip
    """Its gradients: the addresses of dq, dk and dv."""

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
