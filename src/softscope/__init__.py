"""softscope: see how sharp a softmax is, know whether that sharpness costs you anything, and temper it."""

from softscope._attention import additive_attention, attention, attention_partition
from softscope._gradients import gradient_readings
from softscope._jacobian import jacobian, jacobian_product
from softscope._losses import cross_entropy, distillation_loss
from softscope._maps import entmax, log_softmax, logsumexp, softmax, sparsemax
from softscope._partition import Partition, partition
from softscope._reference.gradients import GradientReadings
from softscope._sampling import sample
from softscope._support import Support
from softscope._temperature import Calibration, fit_temperature, temperature_for
from softscope._threads import get_num_threads, set_num_threads

__version__ = "0.1.0"

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
    "sample",
    "set_num_threads",
    "softmax",
    "sparsemax",
    "temperature_for",
]
