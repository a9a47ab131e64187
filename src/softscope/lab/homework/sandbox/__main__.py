"""Run an answer under limits and serve the grader's calls: `python -I FOLDER REQUESTS REPLIES`, with two open pipes.

The first line on REQUESTS is the job. We set limits, import NumPy, drop rights and stop all system calls but those for
computing and reading. Only then do we look at the answer: we compile it and import what it imports. Before its own code
runs, reading ends too. It gets inputs and sends back outputs; this process never knows the right ones.
"""

from __future__ import annotations

import ast
import importlib
import importlib.abc
import json
import linecache
import os
import sys
import traceback
import types
import warnings
from typing import Any

# This folder is a program, not part of the softscope package, so that whatever runs in it starts from NumPy alone.
# It finds its own files next to it, which a type checker cannot know.
limits: Any = importlib.import_module("limits")
seccomp: Any = importlib.import_module("seccomp")
messages: Any = None

NAME = "answer"
FILE = "<answer>"
_LATE = ("random", "linalg", "fft", "polynomial", "ma", "testing")  # NumPy imports these on first use
_NOT_HERE = {"antigravity", "idlelib", "this", "tkinter", "turtle", "turtledemo"}  # they open windows or print


class _Imports(importlib.abc.MetaPathFinder):
    """Refuses imports the exercise does not allow, with a clear message; the rest loaded before the answer ran."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Raise: no new imports from here on."""
        del path, target
        root = fullname.partition(".")[0]
        name = fullname if root in sys.modules else root  # a part of a package that is here, or all of one that is not
        raise ModuleNotFoundError(f"{name} is not available in this exercise", name=name)


def main() -> None:
    """Read the job, enter the sandbox, run the answer, then serve calls until the pipe closes."""
    requests, replies = os.fdopen(int(sys.argv[1]), "rb"), os.fdopen(int(sys.argv[2]), "wb")
    job = json.loads(requests.readline())
    limits.leave_folders(job["folder"])
    limits.set_sizes(job["cpu_seconds"], job["memory"])
    _prepare(job["path"])
    # From here on the process can only compute and read: what follows depends on the answer.
    dropped = limits.drop_rights()
    limits.forbid_processes()
    limits.die_with_parent(job["parent"])
    filtered = seccomp.install(reading=True)
    source = job["source"]
    try:
        code = compile(source, FILE, "exec")
        wanted = _imported(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        _send(replies, job, {"failed": "syntax", **_told(error)})
        return
    _preload([*wanted, *(f"numpy.{name}" for name in _LATE if f".{name}" in source)], job["may_import"])
    limits.drop_reading()
    filtered = seccomp.install(reading=False) and filtered
    _send(replies, job, {"ready": True, "dropped": dropped, "filtered": filtered})
    module = types.ModuleType(NAME)
    _hide(module)
    linecache.cache[FILE] = (len(source), None, source.splitlines(keepends=True), FILE)
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        _send(replies, job, {"failed": "raised", **_told(error)})
        return
    messages.KINDS.update(_named_tuples(module))
    _send(replies, job, {"loaded": sorted(name for name, value in vars(module).items() if callable(value))})
    for line in requests:
        request = json.loads(line)
        _send(replies, request, _answered(module, request))


def _prepare(path: list[str]) -> None:
    """Import NumPy, and set it to one thread, since it cannot start threads later."""
    global messages
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "SOFTSCOPE_NUM_THREADS"):
        os.environ[name] = "1"
    here = sys.path.pop(0)
    sys.path[:] = [*sys.path, *(folder for folder in path if folder not in sys.path)]
    sys.path.insert(0, here)
    messages = importlib.import_module("messages")
    sys.path.remove(here)
    sys.argv[:] = [FILE]
    warnings.simplefilter("ignore")
    importlib.import_module("numpy").seterr(all="ignore")


def _hide(module: types.ModuleType) -> None:
    """Put the answer where its imports look for modules, and take this program away from there.

    This saves the answer from meeting us by accident. One that searches its own process finds us all the same, and
    gains nothing: whatever it sends are values, and the grader decides which are right.
    """
    for name in ("messages", "limits", "seccomp"):
        del sys.modules[name]
    sys.modules["__main__"] = types.ModuleType("__main__")
    sys.modules[NAME] = module


def _imported(tree: ast.AST) -> list[str]:
    """List every module that the code imports, anywhere in it."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _preload(names: list[str], may_import: list[str]) -> None:
    """Import what the answer will need, since it cannot open files later. Forbidden imports fail when it runs."""
    allowed = (set(sys.stdlib_module_names) - _NOT_HERE) | {"numpy", *may_import}
    for name in names:
        if name.partition(".")[0] in allowed and not name.endswith(".__main__"):  # those are programs
            try:
                importlib.import_module(name)
            except BaseException:  # no such module (`from a import b` with a function b), or a program that exits
                continue
    if "softscope" in sys.modules:  # softscope imports its functions on first use
        vars(sys.modules["softscope"]).update({key: getattr(sys.modules["softscope"], key) for key in _public()})
        _warm()
    if "socket" in sys.modules:  # socket loads this late, and would then report an unknown encoding
        importlib.import_module("encodings.idna")
    sys.meta_path.insert(0, _Imports())


def _public() -> list[str]:
    return list(sys.modules["softscope"].__all__)


def _warm() -> None:
    """Call the library once, so that it opens its lazily opened files now."""
    sys.modules["softscope"].softmax([0.0, 1.0], temperature=2.0)


def _named_tuples(module: types.ModuleType) -> dict[str, type]:
    """Return the answer's own named tuples, so that a state of such a type comes back as one."""
    found = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, tuple)]
    return {value.__name__: value for value in found if hasattr(value, "_fields")}


def _answered(module: types.ModuleType, request: dict[str, Any]) -> dict[str, Any]:
    """Call one of the answer's functions; return its value."""
    try:
        function = getattr(module, request["function"])
        result = function(*(messages.decode(part) for part in request["arguments"]))
        return {"large": True} if messages.too_large(result) else {"value": messages.encode(result)}
    except BaseException as error:
        return {"failed": "raised", **_told(error)}


def _told(error: BaseException) -> dict[str, Any]:
    """Format an exception as text, with the last line of the answer that it went through."""
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
    line = error.lineno if isinstance(error, SyntaxError) else (lines[-1] if lines else None)
    try:
        text = str(error.msg if isinstance(error, SyntaxError) else error)
    except BaseException:
        text = ""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return {"error": kind[:60], "text": text[:160], "line": line, "missing": missing}


def _send(replies: Any, request: dict[str, Any], reply: dict[str, Any]) -> None:
    """Send the reply with its request's number, which nobody could know before the request came."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BaseException:
            continue
    replies.write(json.dumps({"number": request["number"], **reply}).encode() + b"\n")
    replies.flush()


if __name__ == "__main__":
    main()
