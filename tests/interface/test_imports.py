"""`import softscope` needs only NumPy, and each room (subpackage) imports only from those above it in the list."""

import ast
import functools
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import softscope as ss

SOURCE = Path(ss.__file__).parent


def run(code: str) -> str:
    """Run the code in a fresh interpreter where every warning is an error."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_needs_numpy_alone_and_does_nothing() -> None:
    code = """
import sys, threading, numpy
before = set(sys.modules)
import softscope
assert not any(name.startswith("softscope.") for name in sys.modules)
from softscope import *
new = {name.partition(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)
rooms = sorted(name for name in sys.modules if name.startswith("softscope."))
print(sorted(new), threading.active_count(), len(rooms))
for late in ("_backends.torch", "nn", "testing", "tasks", "doctor", "experiments", "lab", "site", "cli"):
    assert not any(f"{name}.".startswith(f"softscope.{late}.") for name in rooms), late
for heavy in ("torch", "scipy", "matplotlib", "marimo", "ml_dtypes", "mpmath", "pytest", "hypothesis"):
    assert heavy not in sys.modules, heavy
"""
    new, threads, rooms = run(code).strip().rsplit(" ", 2)
    assert new == "['softscope']"
    assert threads == "1"
    assert int(rooms) > 10  # the rooms behind all the names were looked at


BLOCK = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names}:
            raise ImportError(name + " is blocked")
sys.meta_path.insert(0, Block())
"""


def test_everything_works_where_numpy_is_all_there_is() -> None:
    code = """
import numpy as np, softscope as ss
try:
    import torch
except ImportError:
    print("blocked")
x, y = np.arange(6.0).reshape(2, 3), np.array([0, 2])
q = np.ones((1, 2, 3))
ss.softmax(x), ss.log_softmax(x), ss.logsumexp(x), ss.sparsemax(x), ss.entmax([1, 2])
ss.jacobian(ss.softmax(x)), ss.jacobian_product(ss.softmax(x), x)
ss.cross_entropy(x, y), ss.distillation_loss(x, x, temperature=2.0)
ss.partition(x).merge(ss.partition(x)).entropy, ss.temperature_for(x, peak=0.5)
ss.fit_temperature([[4.0, 0.0], [4.0, 0.0], [4.0, 0.0]], [0, 0, 1])
ss.sample(x, rng=np.random.default_rng(0))
ss.attention(q, q, q, return_partition=True), ss.attention(q, q, q, alpha=1.5, return_partition=True)
ss.attention_partition(q, q, rows=[0]), ss.gradient_readings(q, q, q, q)
ss.additive_attention(q, q, q, np.eye(3), np.eye(3), np.ones(3))
import softscope.testing
print("done")
"""
    names = {"torch", "scipy", "matplotlib", "marimo", "ml_dtypes", "pytest", "hypothesis", "mpmath"}
    assert run(BLOCK.replace("{names}", repr(names)) + code).split() == ["blocked", "done"]


def test_the_torch_backend_is_opened_by_the_first_tensor() -> None:
    code = """
import sys, torch, numpy, softscope as ss
ss.softmax(numpy.ones(3)); ss.attention(*[numpy.ones((1, 2, 3))] * 3)
print("softscope._backends.torch" in sys.modules)
ss.softmax(torch.ones(3))
print("softscope._backends.torch" in sys.modules)
"""
    assert run(code).split() == ["False", "True"]


# From the top of the list to the bottom. The core is every public function and what they share. Two backends are rooms
# of their own: the definition, which imports nothing of ours, and torch's, which is imported lazily.
RANKS = {
    name: rank
    for rank, names in enumerate(
        [["_engine", "bounds"], ["reference"], ["core"], ["torch"], ["nn"], ["testing"], ["tasks"], ["distributed"],
         ["doctor"], ["experiments"], ["lab"], ["site"], ["cli"]]
    )
    for name in names
}  # fmt: skip
# What each room may import from outside at the top of a file.
OUTSIDE = {
    "reference": {"numpy"},
    "core": {"numpy"},
    "bounds": set(),
    "testing": {"numpy"},
    "torch": {"numpy", "torch"},
    "nn": {"torch"},
    "distributed": {"torch"},
    "experiments": {"numpy", "torch"},  # torch only in `layers`, which is imported lazily
}


# Exceptions for the core: the torch backend and the doctor inside a function, and the doctor's types for type checkers.
OPENED_LATE = {"lazy": ("torch", "doctor"), "typing": ("doctor",)}


class Import(NamedTuple):
    file: str
    room: str  # the file's room
    module: str
    when: str  # "top", "typing" or "lazy"


def room_of(name: str) -> str:
    """The room of a module in softscope; '' is the package itself."""
    first, *below = name.split(".")
    if first == "_backends" and below and below[0] in ("reference", "torch"):
        return below[0]
    if first in RANKS and first not in ("reference", "torch"):
        return first
    return "core" if not first or first.startswith("_") else first


@functools.cache
def imports(source: Path = SOURCE) -> list[Import]:
    """Every import in every file: what, where, and when it runs."""
    found = []
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        room = room_of("" if parts == ("__init__",) else ".".join(parts))

        def visit(node: ast.AST, when: str, file: str = "/".join(parts), room: str = room) -> None:
            if isinstance(node, ast.Import):
                found.extend(Import(file, room, alias.name, when) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: a relative import"
                for alias in node.names:
                    inside = f"{node.module}.{alias.name}"
                    module = inside if _is_module(inside) else node.module
                    found.append(Import(file, room, module, when))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                when = "lazy"
            typing = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for child in ast.iter_child_nodes(node):
                visit(child, "typing" if typing and child in node.body else when)

        visit(ast.parse(path.read_text(encoding="utf-8")), "top")
    return found


def _is_module(name: str) -> bool:
    path = SOURCE.parent.joinpath(*name.split("."))
    return name == "softscope._engine" or path.is_dir() or path.with_suffix(".py").exists()


def test_the_search_sees_what_is_there() -> None:
    found = imports()
    assert len({i.file for i in found}) >= 20
    assert {"reference", "core", "torch", "testing"} <= {i.room for i in found}
    assert {"top", "typing", "lazy"} == {i.when for i in found}
    assert any(i.module == "softscope._engine" for i in found)
    assert any(i.module == "softscope._backends.torch" and i.when == "lazy" and i.room == "core" for i in found)
    assert any(i.module == "torch" and i.when == "top" and i.room == "torch" for i in found)
    unknown = {i.room for i in found} - RANKS.keys()
    assert not unknown, f"no place in the list for {unknown}"


def wrong_ways(source: Path = SOURCE) -> list[Import]:
    """Imports from a room further down; the core may import the torch backend and the doctor, but lazily."""
    wrong = []
    for i in imports(source):
        if not (i.module == "softscope" or i.module.startswith("softscope.")):
            continue
        target = room_of(i.module.partition(".")[2])
        opened_late = i.room == "core" and target in OPENED_LATE.get(i.when, ())
        if RANKS[target] > RANKS[i.room] and not opened_late:
            wrong.append(i)
    return wrong


def test_a_room_imports_only_from_those_above_it() -> None:
    assert not wrong_ways()


# The doctor's data flows one way, too. Of what lies beside these folders, they import nothing that uses them.
DOCTOR = ("listen", "read", "judge", "treat", "diagnosis")


def test_the_doctor_imports_one_way() -> None:
    ranks = {name: rank for rank, name in enumerate(DOCTOR)}
    wrong, seen = [], set()
    for i in imports():
        here, there = (name.split(".")[1:2] for name in (i.file.replace("/", "."), i.module.removeprefix("softscope.")))
        if i.room == "doctor" and i.module.startswith("softscope.doctor.") and here[0] in ranks and there[0] in ranks:
            seen.add(here[0])
            if ranks[there[0]] > ranks[here[0]]:
                wrong.append(i)
    assert not wrong
    assert seen == set(DOCTOR)


def test_a_wrong_import_is_found(tmp_path: Path) -> None:
    files = {
        "_backends/reference/softmax.py": "from softscope._maps import softmax",
        "_backends/numpy/maps.py": "from softscope._backends import torch",
        "_arguments/axes.py": "def f():\n    from softscope._backends import torch\n    from softscope import testing",
        "_backends/torch/maps.py": "import softscope.tasks.recall\nfrom softscope import attention",
        "testing/probe.py": "if TYPE_CHECKING:\n    from softscope.doctor import probe\nfrom softscope import _maps",
    }
    for name, code in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(code, encoding="utf-8")
    found = [(i.file, i.module, i.when) for i in wrong_ways(tmp_path)]
    assert found == [
        ("_arguments/axes", "softscope.testing", "lazy"),
        ("_backends/numpy/maps", "softscope._backends.torch", "top"),
        ("_backends/reference/softmax", "softscope._maps", "top"),
        ("_backends/torch/maps", "softscope.tasks.recall", "top"),
        ("testing/probe", "softscope.doctor", "typing"),
    ]


def test_the_definition_stands_alone() -> None:
    inside = {i.module for i in imports() if i.room == "reference" and i.module.startswith("softscope")}
    assert inside
    assert all(module.startswith("softscope._backends.reference") for module in inside), inside
    assert not [i for i in imports() if i.room == "bounds" and i.module.startswith("softscope")]


@pytest.mark.parametrize("room", OUTSIDE)
def test_what_a_room_needs_from_outside(room: str) -> None:
    names = {i.module.partition(".")[0] for i in imports() if i.room == room and i.when == "top"}
    assert names
    assert names - set(sys.stdlib_module_names) - {"softscope"} <= OUTSIDE[room]


def private_names(source: Path = SOURCE) -> list[str]:
    """Underscore names taken from another module of ours, by import or as an attribute."""
    found = []
    for path in sorted(source.rglob("*.py")):
        tree, modules = ast.parse(path.read_text(encoding="utf-8")), set()
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("softscope"):
                continue
            for alias in node.names:
                if _is_module(f"{node.module}.{alias.name}"):
                    modules.add(alias.asname or alias.name)
                elif alias.name.startswith("_") and not alias.name.startswith("__"):
                    found.append(f"{path.relative_to(source)}: {node.module}.{alias.name}")
        for node in ast.walk(tree):
            if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules):
                continue
            if node.attr.startswith("_") and not node.attr.startswith("__"):
                found.append(f"{path.relative_to(source)}: {node.value.id}.{node.attr}")
    return found


def test_private_names_stay_where_they_are() -> None:
    assert not private_names()


def test_a_private_name_that_is_taken_is_found(tmp_path: Path) -> None:
    code = "from softscope._maps import _checked\nfrom softscope._backends import torch\ntorch._secret()"
    (tmp_path / "taker.py").write_text(code, encoding="utf-8")
    assert private_names(tmp_path) == ["taker.py: softscope._maps._checked", "taker.py: torch._secret"]


def test_the_package_file_only_re_exports() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    docstring, *body = tree.body
    assert isinstance(docstring, ast.Expr)
    told: dict[str, str] = {}  # what type checkers see: name and home
    for node in body:
        if isinstance(node, ast.If):
            assert ast.unparse(node.test) == "TYPE_CHECKING"
            for line in node.body:
                assert isinstance(line, ast.ImportFrom)
                told |= {alias.name: line.module.removeprefix("softscope.") for alias in line.names}
        elif isinstance(node, ast.FunctionDef):
            assert node.name in ("__getattr__", "__dir__")
        else:
            assert isinstance(node, ast.ImportFrom | ast.Assign), ast.dump(node)
    assert told == ss._HOMES
    assert sorted(told) == list(ss._HOMES) == list(ss.__all__)
    assert set(ss.__all__) <= set(dir(ss))
    assert all(getattr(ss, name).__name__ == name for name in ss.__all__)
    with pytest.raises(AttributeError, match="no attribute 'softmin'"):
        _ = ss.softmin
