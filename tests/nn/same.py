"""Compare two modules or functions: outputs and every gradient."""

import torch
from torch import Tensor, nn

import softscope.nn

HEADS, SIZE, BATCH, N, M = 2, 6, 3, 4, 5
# In units of eps at the largest entry of a tensor: the same few sums and exponentials in two different orders.
ULPS = 16.0


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def both(seed: int = 0, **arguments) -> tuple[nn.MultiheadAttention, softscope.nn.MultiheadAttention]:
    """PyTorch's module and ours, initialised from the same seed; biases, which start at 0, get random values."""
    modules = []
    for kind in (nn.MultiheadAttention, softscope.nn.MultiheadAttention):
        torch.manual_seed(seed)
        module = kind(SIZE, HEADS, **arguments)
        with torch.no_grad():
            for parameter in module.parameters():
                parameter.add_(0.1 * torch.randn(parameter.shape, dtype=parameter.dtype))
        modules.append(module)
    theirs, ours = modules
    return theirs, ours


def gradients(outputs: list[Tensor | None], inputs: list[Tensor]) -> list[Tensor]:
    """Input gradients of a loss that weights every entry differently."""
    loss = sum((x * torch.linspace(-1.0, 2.0, x.numel(), dtype=x.dtype).reshape(x.shape)).sum() for x in outputs)
    return list(torch.autograd.grad(loss, inputs, allow_unused=True))


def assert_same(got: Tensor | None, wanted: Tensor | None, what: str, ulps: float = ULPS) -> None:
    if wanted is None:
        assert got is None, what
        return
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype), what
    if wanted.numel() == 0:
        return
    error = float((got - wanted).detach().abs().max())
    bound = ulps * torch.finfo(wanted.dtype).eps * max(float(wanted.detach().abs().max()), 1.0)
    assert error <= bound, f"{what}: error {error:.3g} beyond {bound:.3g}; got {got}, wanted {wanted}"


def hold(ours, theirs, inputs: dict[str, Tensor], arguments: dict, what: str) -> None:
    """Call both and compare their outputs and the gradients of inputs, masks and parameters."""
    results = []
    for module in (ours, theirs):
        leaves = [x for x in {id(x): x for x in (*inputs.values(), *arguments.values())}.values() if needs(x)]
        leaves += list(module.parameters())
        output, weights = module(**inputs, **arguments)
        found = gradients([x for x in (output, weights) if x is not None], leaves)
        results.append((output, weights, found))
    (output, weights, grads), (wanted, wanted_weights, wanted_grads) = results
    assert_same(output, wanted, f"{what}: output")
    assert_same(weights, wanted_weights, f"{what}: weights")
    assert any(grad is not None for grad in wanted_grads)
    for i, (got, grad) in enumerate(zip(grads, wanted_grads, strict=True)):
        assert_same(got, grad, f"{what}: gradient {i}")


def needs(x: object) -> bool:
    return isinstance(x, Tensor) and x.requires_grad
