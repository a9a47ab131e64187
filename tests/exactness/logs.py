"""The error allowed for logsumexp, log_softmax and lse, by dtype and backend."""

from exactness import wanted
from exactness.inputs import in_range
from softscope import bounds


def allowed(result: float, maximum: float, log_z: float, mean_distance: float, dtype: str, backend: str) -> float:
    """float64 tensors have nothing wider to compute in; everything else does."""
    if dtype == "float64" and backend == "torch":
        return bounds.logsumexp_in_its_own_width(result, maximum, log_z, mean_distance, dtype)
    return bounds.logsumexp(result, maximum, dtype)


def allowed_for(
    row: tuple, result: object, temperature: float, dtype: str, backend: str, see: tuple | None = None
) -> float:
    """The same for a row, from its exact readings."""
    want = wanted.partition(row, temperature, see) if see else wanted.partition(row, temperature)
    log_z = max(float(want.entropy + want.mean), 0.0) if want.count else 0.0
    return allowed(
        in_range(result, dtype),
        in_range(want.max_logit / temperature, dtype),
        log_z,
        abs(float(want.mean)) if want.count else 0.0,
        dtype,
        backend,
    )
