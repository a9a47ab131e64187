"""The mathematics in the pictures' JavaScript matches the library to 1e-6; the widgets sync what they should."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest

import softscope as ss
from lab import chromium
from softscope.lab.widgets import AttentionWidget, JacobianWidget, ScalingWidget, SoftmaxWidget, pictures

MATHS = pictures.FOLDER / "maths.js"
DRAWING = pictures.FOLDER / "drawing.js"
ROWS = [
    [1.0, 2.0, 3.0],
    [2.0, 2.5],
    [200.0, 250.0],
    [-800.0, -801.0],
    [0.0, 0.0, 0.0, 0.0],
    [3.0, 3.0, 1.0],
    [-3.0, -1.0, 0.0, 1.0, 3.0],
    [0.5],
    [0.0, -740.0],
    [0.0, -800.0, -1e4],
    [1e308, -1e308, 1e308],
    [1e-300, 0.0, -1e-300],
    [5e5, 5e5 - 30.0, 5e5 - 36.0, -5e5],
]


def run(body):
    """Evaluate JavaScript that has the pictures' mathematics in scope, in node or else in chromium."""
    code = re.sub(r"^export ", "", MATHS.read_text("utf-8"), flags=re.MULTILINE)
    code += re.sub(r"^export ", "", DRAWING.read_text("utf-8"), flags=re.MULTILINE)
    node = shutil.which("node")
    if node is None:
        with chromium.browser() as browser:
            page = browser.new_page()
            return page.evaluate(f"(() => {{ {code}\nreturn {body}; }})()")
    made = subprocess.run(
        [node, "-e", f"{code}\nconsole.log(JSON.stringify({body}))"], capture_output=True, text=True, timeout=60
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 7.0])
def test_the_readings_agree(temperature):
    made = run(f"{json.dumps(ROWS)}.map((row) => readings(row, {temperature}))")
    for row, got in zip(ROWS, made, strict=True):
        state = ss.partition(row, temperature=temperature)
        weights = ss.softmax(row, temperature=temperature)
        wanted = {
            "entropy": state.entropy,
            "support": state.effective_support,
            "peak": state.peak,
            "trace": state.jacobian_trace,
            "weights": weights,
            "slopes": np.diagonal(ss.jacobian(weights)),
        }
        for name, value in wanted.items():
            np.testing.assert_allclose(got[name], value, rtol=1e-6, atol=1e-12, err_msg=f"{name} of {row}")


def test_next_to_one_hot_nothing_is_lost():
    got = run("readings([0, -40])")
    assert got["trace"] == pytest.approx(float(ss.partition([0.0, -40.0]).jacobian_trace), rel=1e-6)
    assert got["entropy"] == pytest.approx(float(ss.partition([0.0, -40.0]).entropy), rel=1e-6)


def test_the_jacobians_agree():
    made = run(f"{json.dumps(ROWS)}.map((row) => jacobian(row))")
    norms = run(f"{json.dumps(ROWS)}.map((row) => norm(jacobian(row)))")
    for row, got, norm in zip(ROWS, made, norms, strict=True):
        wanted = ss.jacobian(ss.softmax(row))
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-15)
        np.testing.assert_allclose(norm, np.linalg.norm(wanted), rtol=1e-6, atol=1e-15)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("scale", [None, 1.0])
def test_attention_agrees(causal, scale):
    q, k, v = np.random.default_rng(0).standard_normal((3, 3, 4))
    options = {"causal": causal} | ({} if scale is None else {"scale": scale})
    given = ", ".join(json.dumps(x) for x in (q.tolist(), k.tolist(), v.tolist(), options))
    got = run(f"attention({given})")
    np.testing.assert_allclose(got["products"], q @ k.T, rtol=1e-6)
    wanted = ss.attention(q[None], k[None], v[None], **options)[0]
    np.testing.assert_allclose(got["output"], wanted, rtol=1e-6)
    np.testing.assert_allclose(np.sum(got["weights"], axis=-1), 1.0, rtol=1e-12)


def test_the_random_numbers_are_normal_and_the_dot_products_theirs():
    numbers = np.array(run("Array.from(normals(3, 40000))"))
    assert abs(numbers.mean()) < 0.02
    assert abs(numbers.var() - 1.0) < 0.03
    assert abs(np.mean(numbers**4) - 3.0) < 0.15
    rows, keys, steps = 2, 3, 4
    numbers = np.array(run(f"Array.from(normals(5, {rows * (keys + 1) * 2**steps}))")).reshape(rows, keys + 1, 2**steps)
    made = run(f"dotProducts(5, {rows}, {keys}, {steps})")
    for step, got in enumerate(made):
        wanted = np.einsum("rd,rkd->rk", numbers[:, 0, : 2**step], numbers[:, 1:, : 2**step])
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    many = np.array(run("dotProducts(1, 100, 10, 6)[6].flat()"))
    assert abs(many.var() / 64 - 1.0) < 0.2
    assert run("variance([1, 2, 3, 4])") == 1.25


def test_no_number_is_rounded_into_0_or_1():
    assert run("[0, 1e-9, -1e-9, 0.5, 0.99997, 1 - 1e-9, 1, -Infinity, -0.25].map((x) => shown(x))") == [
        "0.000", "1e−9", "−1e−9", "0.500", "0.99997", "1−1e−9", "1.000", "−∞", "−0.250",
    ]  # fmt: skip


@pytest.mark.parametrize("widget", [SoftmaxWidget, JacobianWidget, ScalingWidget, AttentionWidget])
def test_a_widget_is_one_module_without_imports(widget):
    made = widget(lang="zh")
    assert made.lang == "zh"
    source = str(made._esm)
    assert "import " not in re.sub(r"//.*", "", source)
    assert "http" not in source.replace("http://www.w3.org/2000/svg", "")
    assert source.count("export default") == 1
    with pytest.raises(Exception, match="lang"):
        widget(lang="fr")
