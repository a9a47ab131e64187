"""Derive the softmax derivative for n = 4 symbolically, step by step: the texts' second proof, done by machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope._text import Text, same
from softscope.experiments.table import Cell, Column, Table, label

if TYPE_CHECKING:
    from collections.abc import Iterator

N = 4


def derived() -> Table:
    """Return each step as a formula, whether it holds for every pair (i, j), and how many pairs were checked."""
    rows: list[tuple[Cell, ...]] = []
    for key, formula, differences in _steps():
        zero = [difference == 0 for difference in differences]
        rows.append((key, formula, all(zero), len(zero)))
    return Table(
        "derivation",
        Text(en=f"Symbolic derivation, n = {N}", zh=f"符号推导，n = {N}"),
        (
            label("step", Text(en="step", zh="步骤")),
            Column("formula", Text(en="formula", zh="公式")),
            Column("holds", Text(en="holds", zh="成立")),
            Column("checked", Text(en="cases checked", zh="验证的情形数")),
        ),
        rows,
    )


def _steps() -> Iterator[tuple[Text, Text, list[Any]]]:
    import sympy

    # Substitute e_i = exp(z_i) > 0, so d/dz_i = e_i·d/de_i. Everything is then a rational function and cancels exactly.
    e = sympy.symbols(f"e1:{N + 1}", positive=True)
    total = sum(e)
    s = [x / total for x in e]
    pairs = [(i, j) for i in range(N) for j in range(N)]

    def d(f: Any, j: int) -> Any:
        return e[j] * sympy.diff(f, e[j])

    def delta(i: int, j: int) -> int:
        return int(i == j)

    def differences(left: Any, right: Any) -> list[Any]:
        return [sympy.cancel(sympy.together(left(i, j) - right(i, j))) for i, j in pairs]

    yield (
        Text(en="sum", zh="总和"),
        same("∂/∂z_j Σ exp(z_l) = exp(z_j)"),
        differences(lambda _, j: d(total, j), lambda _, j: e[j]),
    )
    yield (
        same("log-sum-exp"),
        same("∂/∂z_j ln Σ exp(z_l) = s_j"),
        differences(lambda _, j: d(sympy.log(total), j), lambda _, j: s[j]),
    )
    yield (
        Text(en="log", zh="取对数"),
        same("∂ ln s_i/∂z_j = δ_ij − s_j"),
        differences(lambda i, j: d(sympy.log(e[i]) - sympy.log(total), j), lambda i, j: delta(i, j) - s[j]),
    )
    yield (
        Text(en="Jacobian", zh="雅可比矩阵"),
        same("∂s_i/∂z_j = s_i(δ_ij − s_j)"),
        differences(lambda i, j: d(s[i], j), lambda i, j: s[i] * (delta(i, j) - s[j])),
    )
    yield (
        Text(en="column sums", zh="列和"),
        same("Σ_i ∂s_i/∂z_j = 0"),
        [sympy.cancel(sum(d(s[i], j) for i in range(N))) for j in range(N)],
    )
    largest = sympy.Symbol("s", positive=True)
    yield (
        Text(en="parabola", zh="抛物线"),
        Text(en="s(1−s) reaches its maximum 1/4 at s = 1/2", zh="s(1−s) 在 s = 1/2 处取最大值 1/4"),
        [
            sympy.solve(sympy.diff(largest * (1 - largest), largest), largest)[0] - sympy.Rational(1, 2),
            (largest * (1 - largest)).subs(largest, sympy.Rational(1, 2)) - sympy.Rational(1, 4),
        ],
    )
    gap = sympy.Symbol("g", positive=True)
    weights = [sympy.exp(gap) / (sympy.exp(gap) + N - 1)] + [1 / (sympy.exp(gap) + N - 1)] * (N - 1)
    square = sum((weights[i] * (delta(i, j) - weights[j])) ** 2 for i, j in pairs)
    yield (
        Text(en="limit", zh="极限"),
        Text(en="‖J‖ → 0 as the gap grows", zh="差距增大时 ‖J‖ → 0"),
        [sympy.limit(square, gap, sympy.oo)],
    )
