"""Resource limits for an answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one attempt may use; we end its process if it goes over.

    Attributes:
        start_seconds: for starting Python and NumPy; this is the machine's time, not the answer's.
        call_seconds: for loading the file once, and for each call.
        total_seconds: for all calls together.
        cpu_seconds: of CPU time, as the kernel counts it.
        memory: bytes of address space, including NumPy's own.
        output: bytes it may print.
        reply: bytes in one result.
        source: characters in the answer itself.
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
