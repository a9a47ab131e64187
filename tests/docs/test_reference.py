"""The API reference has every public name, each with a docstring and an example, and loads nothing from a network."""

import doctest
import importlib
import inspect
import pathlib
import re
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MODULES = (
    "softscope",
    "softscope.nn",
    "softscope.doctor",
    "softscope.tasks",
    "softscope.testing",
    "softscope.distributed",
    "softscope.experiments",
    "softscope.bounds",
)


def names(module: types.ModuleType) -> list[str]:
    """What a module offers: its `__all__`, or the functions and classes it defines without a leading underscore."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    return sorted(
        name
        for name, thing in vars(module).items()
        if not name.startswith("_") and getattr(thing, "__module__", "") == module.__name__
    )


def public() -> list[tuple[str, str]]:
    """Every public name with its module; for public modules such as `remedies`, their names, too."""
    found = []
    for path in MODULES:
        module = importlib.import_module(path)
        for name in names(module):
            thing = getattr(module, name)
            found.append((path, name))
            if isinstance(thing, types.ModuleType):
                found += [(f"{path}.{name}", inner) for inner in names(thing)]
    return found


def thing(path: str, name: str) -> object:
    found: object = importlib.import_module("softscope")
    for part in (*path.split(".")[1:], name):
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(f"{found.__name__}.{part}")
    return found


def docstring(path: str, name: str) -> str:
    """The documentation of a name; a constant has no docstring, so its module's docstring must describe it."""
    found = thing(path, name)
    if isinstance(found, (type, types.FunctionType, types.ModuleType)):
        return inspect.cleandoc(found.__doc__ or "")
    above = importlib.import_module(path).__doc__ or ""
    return above if f"`{name}`" in above and re.search(rf">>> .*\b{name}\b", above) else ""


PUBLIC = public()


def test_there_are_many() -> None:
    assert len(PUBLIC) > 90
    assert ("softscope", "softmax") in PUBLIC
    assert ("softscope.doctor.remedies", "qk_clip") in PUBLIC
    assert ("softscope.bounds", "ulp") in PUBLIC
    assert ("softscope.bounds", "math") not in PUBLIC


@pytest.mark.parametrize(("path", "name"), PUBLIC)
def test_it_is_documented_with_an_example_that_runs(path: str, name: str) -> None:
    text = docstring(path, name)
    assert text, f"{path}.{name} has no docstring"
    examples = doctest.DocTestParser().get_examples(text)
    assert examples, f"{path}.{name} shows no example"
    assert all("SKIP" not in example.source for example in examples), f"an example of {path}.{name} is never run"
    # pytest runs the doctests of every file under src, so an example there is one that runs.
    home = getattr(thing(path, name), "__module__", None)
    assert home is None or home == "typing" or home.startswith("softscope")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("reference") / "pages"
    command = [sys.executable, "-W", "error", "-m", "softscope.site.reference", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_name_is_on_its_page(built: pathlib.Path) -> None:
    pages = {path: (built / f"{path.replace('.', '/')}.html").read_text("utf-8") for path, _ in PUBLIC}
    missing = [
        f"{path}.{name}"
        for path, name in PUBLIC
        if f'id="{name}"' not in pages[path] and f"{path}.{name}" not in pages  # a module has its own page
    ]
    assert missing == []
    assert ">>> " in re.sub(r"<[^>]*>", "", pages["softscope"]).replace("&gt;", ">")


def test_nothing_is_fetched(built: pathlib.Path) -> None:
    files = [file for file in built.rglob("*") if file.is_file()]
    assert len(files) >= 10
    outside = re.compile(r"""(?:<(?:script|link|img|iframe|source)\b[^>]*?(?:src|href)\s*=\s*["']?|url\(\s*["']?|"""
                         r"""@import\s+["']?|import\(\s*["']|fetch\(\s*["'])(?:https?:)?//""")  # fmt: skip
    assert outside.search('<script src="https://a.example/x.js">')
    assert outside.search("background: url(//a.example/x.png)")
    assert [file.name for file in files if outside.search(file.read_text("utf-8"))] == []


def test_every_module_is_linked_from_the_first_page(built: pathlib.Path) -> None:
    first = (built / "softscope.html").read_text("utf-8")
    for file in built.rglob("*.html"):
        if file.name != "index.html":
            assert f'href="{file.relative_to(built).as_posix()}"' in first
