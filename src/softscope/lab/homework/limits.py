"""How much an answer may use."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one attempt may use; beyond it, its process is ended.

    Attributes:
        start_seconds: until Python and NumPy stand; the machine's time, not the answer's.
        call_seconds: for reading the file once, and for each call.
        total_seconds: for all calls together.
        cpu_seconds: of the processor, the kernel's own count.
        memory: bytes of address space, NumPy's own included.
        output: bytes that it may print.
        reply: bytes of one result.
        source: characters of the answer itself.
    """

    start_seconds: float = 30.0
    call_seconds: float = 5.0
    total_seconds: float = 20.0
    cpu_seconds: int = 15
    memory: int = 2**30
    output: int = 2**20
    reply: int = 2**22
    source: int = 100_000


LIMITS = Limits()
