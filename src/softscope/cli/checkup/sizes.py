"""What a stranger's folder may ask for: bytes of files, numbers in a configuration, and the model they describe."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from softscope.cli.problems import UsageError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

_MIB, _GIB = 2**20, 2**30
CONFIG = 16 * _MIB  # 20,000 labels take one
VOCABULARY = 512 * _MIB  # the largest in use today have 40
WEIGHTS = 2**50
TEXT = 16 * _MIB
BATCH = _GIB

# The largest numbers in use today: a context of 10 million, a vocabulary of one million, some 200 layers.
_LARGEST, _MOST_PARTS, _MOST_LABELS = 2**24, 4096, 2**20
_PARTS = re.compile(r"(layers?|blocks?|depths?|stages?|heads?)$")
# These are no sizes: rotary bases, seeds, ids and counts of tokens, notes on the training.
_FREE = re.compile(r"theta|base|seed|token|param|flo[ps]|step|sample|max_length|version|date", re.IGNORECASE)

# A model has more numbers than its weights' files: tied weights count again, masks and positions are computed.
_TIMES, _SPARE = 8, 256 * _MIB
_MODULES = 200_000  # a mixture with thousands of experts; each costs time and memory even when it holds nothing


def told(size: float) -> str:
    """Format a number of bytes.

    >>> told(2**30), told(3 * 2**19), told(12)
    ('1 GiB', '1.5 MiB', '12 B')
    """
    for unit, one in (("EiB", 2**60), ("TiB", 2**40), ("GiB", _GIB), ("MiB", _MIB)):
        if size >= one:
            return f"{size / one:.3g} {unit}"
    return f"{size:.0f} B"


def check(config: dict[str, Any]) -> None:
    """Refuse a configuration with a number beyond any model's: making room for it would take hours or all memory.

    >>> check({"n_layer": 12, "rope_theta": 10**12, "text_config": {"vocab_size": 128_256}})
    """
    for name, value in _numbers("", config):
        most = _MOST_PARTS if _PARTS.search(name) else _MOST_LABELS if name.endswith("labels") else _LARGEST
        if abs(value) > most and not _FREE.search(name):
            raise UsageError("checkup.folder.number", name=shown(name), value=_short(value), most=most)


def _short(value: int) -> str:
    return str(value) if abs(value) < 10**15 else f"{'-' if value < 0 else ''}2^{abs(value).bit_length() - 1}"


def _numbers(name: str, value: Any) -> Iterator[tuple[str, int]]:
    if isinstance(value, dict):
        for key, x in value.items():
            yield from _numbers(key, x)
    elif isinstance(value, list):
        for x in value:
            yield from _numbers(name, x)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield name, value


@contextlib.contextmanager
def counted(weights: int) -> Iterator[None]:
    """Refuse a model while it is built on the meta device, as soon as it outgrows its weights or this machine."""
    from torch import nn

    place = nn.modules.module
    allowed, free = _TIMES * weights + _SPARE, available()
    total = modules = 0

    def tensor(_module: nn.Module, _name: str, x: Any) -> None:
        nonlocal total
        total += 0 if x is None else x.numel() * x.element_size()
        if total > allowed:
            raise UsageError("checkup.folder.size", need=told(total), have=told(weights))
        if free is not None and total > free:
            raise UsageError("checkup.folder.memory", need=told(total), have=told(free))

    def module(_module: nn.Module, _name: str, _child: Any) -> None:
        nonlocal modules
        modules += 1
        if modules > _MODULES:
            raise UsageError("checkup.folder.modules", most=_MODULES)

    handles = [
        place.register_module_parameter_registration_hook(tensor),
        place.register_module_buffer_registration_hook(tensor),
        place.register_module_module_registration_hook(module),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def available() -> int | None:
    """Return the bytes of memory that this machine can still give, or None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            known = dict(line.split(":", 1) for line in lines)
        return sum(int(known[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))
    except (OSError, KeyError, ValueError):
        return None


@contextlib.contextmanager
def within_memory(most: int | None = None) -> Iterator[None]:
    """Let an allocation beyond `most` more bytes, or beyond the machine's memory, fail instead of ending the process.

    Linux promises memory that it does not have, and ends a process that takes it at its word.
    """
    free = available()
    if free is None:
        yield
        return
    import resource

    with open("/proc/self/statm", encoding="ascii") as sizes:
        now = int(sizes.read().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = now + (free if most is None else min(most, free))
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *known]), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
