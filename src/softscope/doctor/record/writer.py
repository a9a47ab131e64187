"""Who writes a session: which rank of which launch, and which process on which machine.

Launch and machine are short hashes: they tell whether two are the same, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import platform
import sys
from typing import Any, Final

FACT: Final = "writer"  # the session's fact that holds it
_OF_LAUNCH: Final = ("MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT")
_PROC: Final = pathlib.Path("/proc")  # only Linux has it; elsewhere nobody can tell whether a writer is gone


class TakenError(RuntimeError):
    """Another rank of this launch writes the file."""

    def __init__(self, mine: int, other: int) -> None:
        super().__init__(f"rank {other} records into it")
        self.mine, self.other = mine, other


def me() -> dict[str, Any]:
    """This process, as a session stores it; `rank` and `ranks` only if it is one of several that were launched."""
    known: dict[str, Any] = {"process": os.getpid(), "launch": _launch()}
    found = rank()
    if found is not None:
        known |= {"rank": found[0], "ranks": found[1]}
    machine, began = _machine(), _began(os.getpid())
    if machine is not None and began is not None:
        known |= {"machine": machine, "began": began}
    return known


def rank() -> tuple[int, int] | None:
    """This process's rank and how many there are: as `torch.distributed` says, or else the environment; or None."""
    torch: Any = sys.modules.get("torch.distributed")
    with contextlib.suppress(AttributeError, RuntimeError, ValueError):  # it may be half imported, or be shut down now
        if torch is not None and torch.is_available() and torch.is_initialized():
            return int(torch.get_rank()), int(torch.get_world_size())
    with contextlib.suppress(KeyError, ValueError):
        mine, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        if 0 <= mine < ranks:
            return mine, ranks
    return None


def check_free(mine: dict[str, Any], last: str, path: pathlib.Path) -> None:
    """Raise TakenError if the last session, of which these are the facts, is of another rank of this launch.

    It may have finished: what this rank reads is not its continuation. After a restart, a rank that has a file beside
    this one goes on in that, whichever rank comes first.
    """
    theirs: Any = None
    with contextlib.suppress(ValueError, RecursionError, TypeError, KeyError):  # anyone may have written the file
        theirs = json.loads(last)[FACT]
    if not isinstance(theirs, dict):
        return
    a, b = mine.get("rank"), theirs.get("rank")
    if type(a) is not int or type(b) is not int or a == b:
        return
    if theirs.get("launch") == mine["launch"] or beside(path, a).exists():
        raise TakenError(a, b)


def beside(path: pathlib.Path, rank: int) -> pathlib.Path:
    """The file for another rank.

    >>> beside(pathlib.Path("runs/run.db"), 1).as_posix()
    'runs/run.rank1.db'
    """
    return path.with_name(f"{path.stem}.rank{rank}{path.suffix}")


def is_gone(writer: Any) -> bool:
    """Whether this process has ended; False if that cannot be known here, as for one on another machine."""
    known = writer if isinstance(writer, dict) else {}
    process, machine, began = (known.get(name) for name in ("process", "machine", "began"))
    if type(process) is not int or not 0 < process < 2**31 or type(began) is not int:
        return False
    if machine is None or machine != _machine():
        return False
    try:
        os.kill(process, 0)  # sends nothing
    except ProcessLookupError:
        return True
    except OSError:  # it runs as another user, and its start may be hidden
        pass
    now = _began(process)
    return now is not None and now != began  # the number may have been given to another process


def _launch() -> str:
    """The same for all ranks that were started together, and another one after a restart."""
    told = [f"{name}={os.environ[name]}" for name in _OF_LAUNCH if name in os.environ]
    return _hash(*(told or [_machine() or platform.node(), str(os.getppid())]))


def _machine() -> str | None:
    """This machine since it was started, and the space of process numbers, of which each container may have one."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text("utf-8").strip()
        return _hash(boot, platform.node(), os.readlink(_PROC / "self/ns/pid"))
    except OSError:
        return None


def _began(process: int) -> int | None:
    """When a process began, in the kernel's ticks; 0 if it has ended and nobody has asked how; None if unknown."""
    try:
        told = (_PROC / str(process) / "stat").read_text("utf-8", "replace")
        state, *rest = told.rpartition(")")[2].split()  # the name before it may hold anything
        return 0 if state in "ZX" else int(rest[18])
    except (OSError, ValueError, IndexError):
        return None


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()[:12]
