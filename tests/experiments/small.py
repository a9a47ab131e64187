"""Every experiment at test size, run once and shared by all tests."""

import functools

from softscope import experiments

SIZES = {
    "overflow": {},
    "extremes": {"rows": 400},
    "temperature": {"problems": 1500},
    "saturation": {},
    "variance": {"samples": 5000, "dimensions": (1, 16, 64)},
    "lanes": {"runs": 200, "samples": 20_000, "lengths": (4, 64)},
    "entropy": {"runs": 200, "dimensions": (16, 64, 256), "keys": (10, 32)},
    "gradients": {"runs": 60, "dimensions": (16, 256)},
    "normalisers": {"d": 8, "steps": 4, "repeats": 2},
    "weights": {"samples": 5000},
    "attention": {},
    "scores": {"runs": 12, "dimensions": (16, 64), "tokens": 16},
    "learning": {
        "seeds": 3,
        "steps": 60,
        "dimensions": (16, 128),
        "remedies": ("none", "temperature", "softcap"),
        "keys": (16, 24, 64),
        "longer": 160,
    },
    "remedies": {},
    "initialisation": {"runs": 40, "widths": (64,)},
    "cost": {"tokens": (256, 512, 1024), "methods": ("materialised", "attention")},
}
TIMED = {"scores", "cost"}  # their tables hold times, which vary between runs


@functools.cache
def result(name: str) -> experiments.Result:
    return experiments.run(name, **SIZES[name])
