"""Every public function of tensors × every transform of PyTorch: what a caller gets.

    R  the right numbers, compared with central differences of the function itself in eager mode
    c  a constant, which says so: its requires_grad is False
    S  one sentence that says what is not supported and what to do instead

The functions take one vector, which is cut into all the inputs that they are differentiable in.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import softscope as ss
import softscope.nn

TABLE = """
                                jvp jvp(jvp) linearize dual vjp grad grad(jvp) jacrev jacfwd hessian vmap vmap(grad) batched double export fake meta compile compile(jvp)
softmax                         R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
log_softmax                     R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
logsumexp                       R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
sparsemax                       R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
entmax                          R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
entmax,alpha                    R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
entmax,beyond_2                 R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
jacobian                        R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
jacobian_product                R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
cross_entropy                   R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
distillation_loss               R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
partition                       R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
partition,merge                 R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
attention                       R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
attention,every_option          R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
attention,alpha                 R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
attention,learned_alpha         R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
attention,its_partition         R   R        R         R    R   R    R         R      R      R       R    R          c       c      R      R    R    R       R
attention,its_support           R   R        R         R    R   R    R         R      R      R       R    R          c       c      R      R    R    R       S
additive_attention              R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
additive_attention,alpha        R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
attention_partition             R   R        R         R    R   R    R         R      R      R       R    R          c       c      R      R    R    R       R
attention_partition,alpha       R   R        R         R    R   R    R         R      R      R       R    R          c       c      R      R    R    R       S
gradient_readings               R   R        R         R    R   R    R         R      R      R       R    R          c       c      R      R    R    R       R
gradient_readings,alpha         R   R        R         R    R   R    R         R      R      R       R    R          c       c      R      R    R    R       S
temperature_for                 S   S        S         S    S   S    S         S      S      S       S    S          c       c      S      S    S    S       S
fit_temperature                 S   S        S         S    S   S    S         S      S      S       S    S          c       c      S      S    S    S       S
sample                          S   S        S         c    S   S    S         S      S      S       S    S          c       c      S      S    S    S       S
scaled_dot_product_attention    R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
MultiheadAttention              R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       R
MultiheadAttention,alpha        R   R        R         R    R   R    R         R      R      R       R    R          R       R      R      R    R    R       S
"""  # noqa: E501

_header, *_rows = (line.split() for line in TABLE.strip().splitlines())
CELLS = {(row[0], column): cell for row in _rows for column, cell in zip(_header, row[1:], strict=True)}

_random = torch.Generator().manual_seed(14)


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=_random, dtype=torch.float64)


X, OTHER = 0.6 * normal(2, 4), normal(2, 4)
P = torch.softmax(normal(2, 4), dim=-1)
HOT = torch.tensor([[0.8], [1.7]], dtype=torch.float64)
ALPHA = torch.tensor([[1.3], [1.8]], dtype=torch.float64)
SHOWN = torch.tensor([[True, True, False, True], [False, True, True, True]])
TARGETS, IGNORED = torch.tensor([2, 1]), torch.tensor([2, -100])
Q, K, V = normal(2, 3, 2), normal(1, 4, 2), normal(1, 4, 2)
BIAS, SINK, SCALE = normal(3, 4), normal(2), torch.tensor([0.5, 1.5], dtype=torch.float64)
MASK = torch.tensor([[True, True, False, True], [False, True, True, True], [False, False, False, False]])
W_Q, W_K, V_A, GRAD = normal(2, 3), normal(2, 3), normal(3), normal(2, 3, 2)
TOKENS = normal(2, 3, 4)
GENERATOR = torch.Generator()

READINGS = ("lse", "entropy", "collision", "peak", "max_logit", "variance", "jacobian_trace", "sharpness")
SUPPORT = ("tau", "entropy", "collision", "peak", "jacobian_trace")
GRADIENT = ("demand", "supply", "transmission", "advantage", "regret_ratio")


def read(found: Any, names: tuple[str, ...]) -> Tensor:
    return torch.stack([getattr(found, name) for name in names])


def _merged(x: Tensor, t: Tensor) -> Tensor:
    parts = [ss.partition(part, temperature=t) for part in (x[:, :1], x[:, 1:])]
    return read(parts[0].merge(parts[1]), READINGS)


def _every_option(q: Tensor, k: Tensor, v: Tensor, scale: Tensor, bias: Tensor, sink: Tensor) -> Tensor:
    return ss.attention(q, k, v, scale=scale, mask=bias, sink=sink, softcap=1.5, window=(2, 1), query_start=1)


def _module(**options: Any) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """A module as a function of its input and its parameters, through functional_call."""
    module = softscope.nn.MultiheadAttention(4, 2, batch_first=True, dtype=torch.float64, **options)
    names = [name for name, _ in module.named_parameters()]

    def function(x: Tensor, *parameters: Tensor) -> Tensor:
        given = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, given, (x, x, x), {"need_weights": False})[0]

    return function, (TOKENS, *(0.3 * normal(*p.shape) for p in module.parameters()))


FUNCTIONS: dict[str, tuple[Callable[..., Tensor], tuple[Tensor, ...]]] = {
    "softmax": (lambda x, t: ss.softmax(x, temperature=t, where=SHOWN.to(x.device)), (X, HOT)),
    "log_softmax": (lambda x, t: ss.log_softmax(x, axis=0, temperature=t), (X, normal(1, 4).exp())),
    "logsumexp": (lambda x, t: ss.logsumexp(x, temperature=t), (X, HOT)),
    "sparsemax": (lambda x, t: ss.sparsemax(x, temperature=t, where=SHOWN.to(x.device)), (X, HOT)),
    "entmax": (lambda x: ss.entmax(x), (X,)),
    "entmax,alpha": (lambda x, a, t: ss.entmax(x, a, temperature=t), (X, ALPHA, HOT)),
    "entmax,beyond_2": (lambda x, a, t: ss.entmax(x / 4.0, a + 1.5, temperature=t), (X, ALPHA, HOT)),
    "jacobian": (lambda p, a, t: ss.jacobian(p, alpha=a, temperature=t), (P, ALPHA, HOT)),
    "jacobian_product": (lambda p, v, a: ss.jacobian_product(p, v, alpha=a), (P, OTHER, ALPHA)),
    "cross_entropy": (
        lambda x, t: torch.stack([
            ss.cross_entropy(x, TARGETS.to(x.device), temperature=t, label_smoothing=0.1),
            ss.cross_entropy(x, IGNORED.to(x.device), reduction="sum"),
        ]), (X, HOT)),
    "distillation_loss": (lambda s, t, h: ss.distillation_loss(s, t, temperature=h), (X, OTHER, HOT)),
    "partition": (lambda x, t: read(ss.partition(x, temperature=t), READINGS), (X, HOT)),
    "partition,merge": (_merged, (X, HOT)),
    "attention": (lambda q, k, v: ss.attention(q, k, v, mask=MASK.to(q.device)), (Q, K, V)),
    "attention,every_option": (_every_option, (Q, K, V, SCALE, BIAS, SINK)),
    "attention,alpha": (
        lambda q, k, v: ss.attention(q, k, v, mask=MASK.to(q.device), alpha=1.5, softcap=2.0)
        + ss.attention(q, k, v, alpha=2.0, causal=True, query_start=1), (Q, K, V)),
    "attention,learned_alpha": (
        lambda q, k, v, a: ss.attention(q, k, v, mask=MASK.to(q.device), alpha=a), (Q, K, V, ALPHA[:, 0])),
    "attention,its_partition": (
        lambda q, k, v: read(ss.attention(q, k, v, sink=0.0, return_partition=True)[1], READINGS), (Q, K, V)),
    "attention,its_support": (
        lambda q, k, v: read(ss.attention(q, k, v, alpha=1.5, return_partition=True)[1], SUPPORT), (Q, K, V)),
    "additive_attention": (ss.additive_attention, (Q, K, V, W_Q, W_K, V_A)),
    "additive_attention,alpha": (lambda *given: ss.additive_attention(*given, alpha=1.5), (Q, K, V, W_Q, W_K, V_A)),
    "attention_partition": (
        lambda q, k: read(ss.attention_partition(q, k, rows=[0, -1], softcap=2.0), READINGS), (Q, K)),
    "attention_partition,alpha": (
        lambda q, k: read(ss.attention_partition(q, k, rows=[0, 2], alpha=2.0), SUPPORT), (Q, K)),
    "gradient_readings": (
        lambda q, k, v, g: read(ss.gradient_readings(q, k, v, g, rows=[1, 2], softcap=2.0), GRADIENT), (Q, K, V, GRAD)),
    "gradient_readings,alpha": (
        lambda q, k, v, g: read(ss.gradient_readings(q, k, v, g, alpha=1.5), GRADIENT), (Q, K, V, GRAD)),
    "temperature_for": (lambda x: ss.temperature_for(x, entropy=0.9), (X,)),
    "fit_temperature": (
        lambda x: torch.tensor(ss.fit_temperature(x, TARGETS).temperature, dtype=torch.float64), (X,)),
    "sample": (lambda x: ss.sample(x, rng=GENERATOR), (X,)),
    "scaled_dot_product_attention": (
        lambda q, k, v: softscope.nn.scaled_dot_product_attention(q, k, v, enable_gqa=True), (Q, K, V)),
    "MultiheadAttention": _module(softcap=3.0, temperature=True, sink=True, qk_norm="rms"),
    "MultiheadAttention,alpha": _module(alpha=1.5),
}  # fmt: skip


class Case:
    """A function of one vector, with its derivatives by central differences in eager mode."""

    def __init__(self, name: str):
        self.inner, self.inputs = FUNCTIONS[name]
        self.v = torch.cat([x.reshape(-1) for x in self.inputs])
        directions = np.random.default_rng(3)
        self.t, self.u = (torch.tensor(directions.normal(size=len(self.v))) for _ in range(2))
        with torch.no_grad():
            self.y = self(self.v)
        self.c = torch.tensor(directions.normal(size=tuple(self.y.shape)))

    def __call__(self, v: Tensor) -> Tensor:
        parts = torch.split(v, [x.numel() for x in self.inputs])
        return self.inner(*(part.reshape(x.shape) for part, x in zip(parts, self.inputs, strict=True)))

    def scalar(self, v: Tensor) -> Tensor:
        """Σ c·f(v)."""
        return (self(v) * self.c).sum()

    def slope(self, v: Tensor) -> Tensor:
        """The derivative of f along t, (…)."""
        return torch.func.jvp(self, (v,), (self.t,))[1]

    @functools.cached_property
    @torch.no_grad()
    def jacobian(self) -> Tensor:
        """∂f/∂v, (…, len(v)), with an error of about 1e-9."""
        h = 1e-6
        columns = [(self(self.v + h * e) - self(self.v - h * e)) / (2.0 * h) for e in torch.eye(len(self.v)).double()]
        return torch.stack(columns, dim=-1)

    @functools.cached_property
    @torch.no_grad()
    def curvature(self) -> Tensor:
        """t·(∂²Σcf/∂v²)·u, with an error of about 1e-8: differences at h and 2h, so that the terms in h² cancel."""

        def difference(h: float) -> Tensor:
            up, down = h * (self.t + self.u), h * (self.t - self.u)
            corners = [self.scalar(self.v + step) for step in (up, -up, down, -down)]
            return (corners[0] + corners[1] - corners[2] - corners[3]) / (4.0 * h * h)

        return (4.0 * difference(2e-4) - difference(4e-4)) / 3.0


@functools.cache
def case_of(name: str) -> Case:
    return Case(name)
