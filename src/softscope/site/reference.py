"""The API reference from the docstrings: plain HTML that opens from file://. `make reference` runs this.

    python -m softscope.site.reference [FOLDER]        build/reference if no folder is given

pdoc does the work, also for names that a module fetches only when they are first used. The sidebar is ours
(`pdoc/module.html.jinja2`): `softscope.__all__` holds functions only, so pdoc alone would not link its submodules.
"""

from __future__ import annotations

import importlib
import pathlib
import shutil
import sys
import types
import typing

import softscope

MODULES = (
    "softscope",
    "softscope.nn",
    "softscope.doctor",  # and with it the modules that its __all__ names: remedies, report, sinks
    "softscope.tasks",
    "softscope.testing",
    "softscope.distributed",
    "softscope.experiments",
    "softscope.bounds",
)


def build(folder: pathlib.Path) -> None:
    """Write the pages into the folder; whatever was there goes."""
    import pdoc

    _under_its_public_name("softscope.doctor.treat.remedies", "softscope.doctor.remedies")
    for name in (*MODULES, "softscope.doctor.report"):
        _resolve_fields(importlib.import_module(name))
    pdoc.render.configure(
        docformat="google",
        footer_text=f"softscope {softscope.__version__}",
        template_directory=pathlib.Path(__file__).parent / "pdoc",
    )
    shutil.rmtree(folder, ignore_errors=True)
    # report/page.py holds the function report.page; pdoc would give the file a page of its own.
    pdoc.pdoc(*MODULES, "!softscope.doctor.report.page", output_directory=folder)


def _under_its_public_name(home: str, public: str) -> None:
    """Show a module by the name it is imported by, and not its files, which are named like the functions in them."""
    module = sys.modules[public] = importlib.import_module(home)
    module.__name__, module.__path__ = public, []


def _resolve_fields(module: types.ModuleType) -> None:
    """Give the constructors of NamedTuples the types themselves: pdoc looks for their names in the wrong module."""
    for name in getattr(module, "__all__", ()):
        found = getattr(module, name)
        if isinstance(found, type) and hasattr(found, "_fields"):
            found.__new__.__annotations__ = typing.get_type_hints(found)


if __name__ == "__main__":
    wanted = pathlib.Path(*sys.argv[1:2] or ["build/reference"])
    build(wanted)
    print(f"Open {wanted / 'index.html'} in a browser.")
