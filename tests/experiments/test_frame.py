"""The framework: running by name, tables, figures, the progress bar, and what is not imported."""

import io
import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

from experiments.small import result
from softscope import _progress_bar, experiments
from softscope._text import Text, same
from softscope.experiments import Column, Measured, Table, catalogue, chart, subprocess_timing
from softscope.experiments.table import label, shown


def python(code):
    return subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: experiments.run("overflw"), ValueError, "did you mean 'overflow'?"),
        (lambda: experiments.run("qqqq"), ValueError, "name must be one of overflow, extremes"),
        (lambda: experiments.run("overflow", lang="fr"), ValueError, "lang must be one of en, zh, but got 'fr';"),
        (lambda: experiments.run("extremes", row=3), TypeError, "extremes has no option 'row'; it has seed, rows"),
        (lambda: result("overflow")["nothing"], KeyError, "no table is called 'nothing'; there are limits"),
        (lambda: result("overflow")["limits"].row(dtype="float8"), KeyError, "no row of 'limits' has"),
        (lambda: chart.save(result("overflow"), __import__("pathlib").Path("x.pdf"), "en"), ValueError, "'.pdf'"),
    ],
)
def test_mistakes(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert message in str(caught.value)


def test_a_row_of_another_length_is_refused():
    with pytest.raises(ValueError, match="table 't' has 1 columns"):
        Table("t", Text(en="t", zh="表"), (label("a", same("a")),), [(1, 2)])


def test_settings_hold_the_defaults_and_what_was_asked():
    found = experiments.run("extremes", rows=50, seed=4, lang="zh")
    assert found.settings == {"seed": 4, "rows": 50}
    assert str(found) == found.markdown("zh")
    assert 0 < found.seconds < 60
    assert result("overflow").settings == {"seed": 0}


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (0.99999, "0.99999"),
        (1.0 - 3.1e-5, "0.99997"),
        (1.0 - 3e-7, "1−3e-07"),
        (1.0 + 2e-16, "1.00"),
        (1.0002, "1.0002"),
        (3.1e-5, "3.1e-05"),
        (0.5, "0.500"),
        (123456.7, "123457"),
        (1.5e7, "1.5e+07"),
        (-2.345, "-2.35"),
        (math.nan, "–"),
        (math.inf, "inf"),
        (None, "–"),
        (np.float64(0.25), "0.250"),
        (np.True_, "✓"),
        (False, "✗"),
        (7, "7"),
        ("word", "word"),
        (Text(en="word", zh="词"), "词"),
        (Measured(1.2345, 0.05), "1.23 ± 0.05"),
        (Measured(1.2345, 0.00004), "1.23 ± 4e-05"),
        (Measured(0.0, 0.0), "0 ± 0"),
        (Measured(1.0, 6e-18), "1 ± 0"),
        (Measured(0.99999, 9e-6), "0.99999 ± 0.00001"),
    ],
)
def test_cells(cell, text):
    assert shown(cell, "zh") == text


def test_units_stand_in_the_head():
    column = Column("t", Text(en="time", zh="耗时"), Text(en="ms", zh="毫秒"))
    assert (column.head("en"), column.head("zh")) == ("time (ms)", "耗时 (毫秒)")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_bar_is_drawn_on_a_terminal_past_a_second_and_wiped(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress_bar.time, "monotonic", lambda: now[0])
    stream = Terminal()
    bar = _progress_bar.ProgressBar("entropy", stream)
    bar(0.1)
    assert stream.getvalue() == ""
    now[0] = 1.5
    assert list(bar.through([1, 2, 3, 4])) == [1, 2, 3, 4]
    assert "entropy [" in stream.getvalue()
    assert " 75%" in stream.getvalue()
    bar.wipe()
    assert stream.getvalue().endswith("\r" + " " * len(bar.drawn) + "\r")


def test_no_bar_where_nobody_watches(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress_bar.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    bar = _progress_bar.ProgressBar("entropy", stream)
    now[0] = 5.0
    bar(0.5)
    bar.wipe()
    assert stream.getvalue() == ""


def test_what_is_measured_alone_has_one_thread_and_says_what_went_wrong():
    found = subprocess_timing.alone("import os; print(json.dumps({'threads': softscope.get_num_threads()}))")
    assert found == {"threads": 1}
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        subprocess_timing.alone("1 / 0")


def test_importing_the_room_imports_none_of_the_heavy_packages():
    code = """
import sys
from softscope import experiments
for name in experiments.NAMES:
    experiments.entry(name)
experiments.run("overflow"), experiments.run("extremes", rows=20).markdown("zh")
print([m for m in ("torch", "altair", "sympy", "vl_convert", "scipy", "pandas") if m in sys.modules])
"""
    done = python(code)
    assert done.stdout.strip() == "[]", done.stderr


@pytest.mark.parametrize(
    ("name", "package"), [("learning", "torch"), ("normalisers", "torch"), ("saturation", "sympy")]
)
def test_what_is_missing_is_said_before_the_work(name, package):
    code = f"import sys; sys.modules[{package!r}] = None; from softscope import experiments; experiments.run({name!r})"
    done = python(code)
    assert done.returncode == 1
    wanted = f"ImportError: experiment {name} needs {package}: pip install 'softscope[experiments]'"
    assert done.stderr.strip().splitlines()[-1] == wanted


def test_a_chart_without_altair_says_what_to_install():
    setup = "import sys; sys.modules['altair'] = None; from softscope import experiments; "
    code = setup + "experiments.run('overflow').chart()"
    wanted = "ImportError: charts need altair: pip install 'softscope[experiments]'"
    assert python(code).stderr.strip().splitlines()[-1] == wanted


def test_needs_are_what_the_modules_import():
    assert {name for name in experiments.NAMES if catalogue.entry(name).needs} == {
        "learning",
        "normalisers",
        "remedies",
        "saturation",
    }
    code = """
import sys
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "sympy", "altair", "scipy"):
            raise ImportError(name)
sys.meta_path.insert(0, Block())
from softscope import experiments
sizes = {"variance": dict(samples=50, dimensions=(4,)), "entropy": dict(runs=20, dimensions=(4, 16), keys=(10,)),
         "gradients": dict(runs=4, dimensions=(4, 8)), "scores": dict(runs=2, dimensions=(4, 8), tokens=4),
         "initialisation": dict(runs=2, widths=(8,)), "temperature": dict(problems=50), "extremes": dict(rows=20),
         "cost": dict(tokens=(64, 80), methods=("materialised",)), "overflow": {},
         "lanes": dict(runs=20, samples=50, lengths=(4, 8)), "weights": dict(samples=50), "attention": {}}
for name in experiments.NAMES:
    if not experiments.entry(name).needs:
        experiments.run(name, **sizes[name])
print("done")
"""
    done = python(code)
    assert done.stdout.strip() == "done", done.stderr


def test_a_page_needs_no_network(tmp_path):
    path = tmp_path / "x.html"
    chart.save(result("extremes"), path, "zh")
    page = path.read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert '<html lang="zh-CN">' in page
    assert page.index("<style>") < page.index("<script"), "the style is lost in a script"
    assert page.partition("<main>")[2].count("<table>") == len(result("extremes").readable)
    assert page.rindex("</script>") < page.index("<main>") < page.rindex("</body>")
    assert result("extremes").notes[0].zh[:20] in page
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", page), "the page asks for something outside"
    assert '"editor": false' in page.lower() or '"editor":false' in page.lower()


@pytest.mark.parametrize("suffix", [".svg", ".png", ".SVG"])
def test_pictures(tmp_path, suffix):
    path = tmp_path / f"x{suffix}"
    chart.save(result("overflow"), path, "zh")
    data = path.read_bytes()
    if suffix.lower() == ".svg":
        assert data.startswith(b"<svg")
        assert "数据类型" in data.decode("utf-8")
    else:
        assert data.startswith(b"\x89PNG\r\n\x1a\n")
        assert len(data) > 20_000


def test_a_bar_never_reads_as_1_without_being_1():
    rows = [{"name": "a", "share": 0.9995}, {"name": "b", "share": 1.0}, {"name": "c", "share": 3e-5}]
    drawn = chart.bars(rows, ("name", ""), chart.Axis("share", "share", domain=(0.0, 1.2))).to_dict()
    assert [row["text"] for row in drawn["data"]["values"]] == ["0.9995", "1.00", "3e-05"]


def test_the_document_survives_what_json_cannot_hold():
    table = Table(
        "t",
        Text(en="t", zh="表"),
        (label("a", same("a")), Column("b", Text(en="b", zh="乙"))),
        [(math.inf, Measured(1.0, math.nan))],
    )
    made = experiments.Result("x", Text(en="x?", zh="问"), (table,), (), {"n": np.int64(3)})
    row = json.loads(made.json())["tables"][0]["rows"][0]
    assert row == {"a": None, "b": {"value": 1.0, "standard_error": None}}
