"""softscope: see how sharp a softmax is, know whether that sharpness costs you anything, and temper it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softscope._attention import additive_attention, attention, attention_partition
    from softscope._gradient_readings import GradientReadings, gradient_readings
    from softscope._jacobian import jacobian, jacobian_product
    from softscope._losses import cross_entropy, distillation_loss
    from softscope._maps import entmax, log_softmax, logsumexp, softmax, sparsemax
    from softscope._partition import Partition, partition
    from softscope._probe import probe
    from softscope._sampling import sample
    from softscope._support import Support
    from softscope._temperature import Calibration, fit_temperature, temperature_for
    from softscope._threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

# Each name is imported on first use, so that callers who want a softmax do not wait for attention.
_HOMES = {
    "Calibration": "_temperature",
    "GradientReadings": "_gradient_readings",
    "Partition": "_partition",
    "Support": "_support",
    "additive_attention": "_attention",
    "attention": "_attention",
    "attention_partition": "_attention",
    "cross_entropy": "_losses",
    "distillation_loss": "_losses",
    "entmax": "_maps",
    "fit_temperature": "_temperature",
    "get_num_threads": "_threads",
    "gradient_readings": "_gradient_readings",
    "jacobian": "_jacobian",
    "jacobian_product": "_jacobian",
    "log_softmax": "_maps",
    "logsumexp": "_maps",
    "partition": "_partition",
    "probe": "_probe",
    "sample": "_sampling",
    "set_num_threads": "_threads",
    "softmax": "_maps",
    "sparsemax": "_maps",
    "temperature_for": "_temperature",
}

__all__ = [
    "Calibration",
    "GradientReadings",
    "Partition",
    "Support",
    "additive_attention",
    "attention",
    "attention_partition",
    "cross_entropy",
    "distillation_loss",
    "entmax",
    "fit_temperature",
    "get_num_threads",
    "gradient_readings",
    "jacobian",
    "jacobian_product",
    "log_softmax",
    "logsumexp",
    "partition",
    "probe",
    "sample",
    "set_num_threads",
    "softmax",
    "sparsemax",
    "temperature_for",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
