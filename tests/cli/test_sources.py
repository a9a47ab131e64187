"""Where the numbers come from: arguments, standard input, .npy files."""

import numpy as np
import pytest

from cli.commands import softmax


def logits(document):
    return [entry["logit"] for entry in document["entries"]]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["-3", "-1", "0", "1", "3"], [-3, -1, 0, 1, 3]),
        (["-1e5", "-.5", "+2", "1e-3"], [-1e5, -0.5, 2, 1e-3]),
        (["1", "--temperature", "2", "-3", "--map", "sparsemax", "4"], [1, -3, 4]),
        (["--", "-3", "2"], [-3, 2]),
        (["[1,", "2,", "3]"], [1, 2, 3]),
        (["[1.5,-2]"], [1.5, -2]),
        (["-3,-2"], [-3, -2]),
        (["−3", "2"], [-3, 2]),  # the mathematical minus sign, as printed in texts
        (["1，2、3"], [1, 2, 3]),
    ],
)
def test_arguments(run, words, wanted):
    document = run.json("explain", *words)
    assert logits(document) == wanted
    assert document["source"] == {"kind": "arguments", "shape": [len(wanted)], "row": 0}


@pytest.mark.parametrize("words", [[], ["-"]])
@pytest.mark.parametrize("text", ["1 2 3", "1\n2\n3\n", "[1.0, 2.0, 3.0]", "1,2;3", "\ufeff1\t2\r\n3"])
def test_stdin(run, words, text):
    document = run.json("explain", *words, stdin=text)
    assert logits(document) == [1, 2, 3]
    assert document["source"]["kind"] == "stdin"


def test_arguments_are_taken_though_stdin_is_a_pipe(run):
    assert logits(run.json("explain", 4, 5, stdin="1 2 3")) == [4, 5]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", ">f4", "longdouble"])
def test_file(run, tmp_path, dtype):
    path = tmp_path / "x.npy"
    np.save(path, np.array([1, 2, 3], dtype=dtype))
    for words in ([path], ["--file", path]):
        document = run.json("explain", *words)
        assert logits(document) == [1, 2, 3]
        assert document["source"] == {"kind": "file", "shape": [3], "row": 0}


def test_file_of_another_name(run, tmp_path):
    path = tmp_path / "logits"
    with path.open("wb") as file:
        np.save(file, np.array([1.0, 2.0]))
    assert logits(run.json("explain", "--file", path)) == [1, 2]


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_a_file(run, tmp_path, order):
    path = tmp_path / "x.npy"
    x = np.array([[1.0, 2.0, 3.0], [9.0, 1.0, 1.0], [5.0, 5.0, 5.0]])
    np.save(path, np.asarray(x, order=order))
    for words, row in (([], 0), (["--row", 0], 0), (["--row", 2], 2), (["--row", -2], 1)):
        document = run.json("explain", path, *words)
        assert logits(document) == list(x[row])
        assert document["source"] == {"kind": "file", "shape": [3, 3], "row": row}
    text = run.text("explain", path)
    assert "Row 0 of 3" in text
    assert "--row" in text
    assert "Row 1 of 3" in run.text("explain", path, "--row", 1)
    assert "第 1 行（共 3 行" in run.text("explain", path, "--row", 1, "--lang", "zh")


def test_all_rows_are_summed_up(run, tmp_path):
    path = tmp_path / "x.npy"
    x = np.random.default_rng(3).standard_normal((2, 4, 8))
    x[1, 0, 3] = np.nan
    x[1, 1, 3] = np.inf
    np.save(path, x)
    document = run.json("explain", path, "--temperature", 0.5)
    supports = []
    for row in x.reshape(-1, 8):
        if np.isfinite(row).all():
            p = np.array(softmax(list(row), 0.5))
            supports.append(float(np.exp(-(p * np.log(p)).sum())))
    assert document["rows"]["count"] == 8
    assert document["rows"]["read"] == len(supports) == 6
    assert document["rows"]["effective_support"] == pytest.approx(
        {"min": min(supports), "median": float(np.median(supports)), "max": max(supports)}, rel=1e-12
    )
    assert "Over the 6 rows" in run.text("explain", path)
    assert run.json("explain", path, "--row", 0)["rows"] is None


def test_a_number_alone_in_a_file(run, tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.float64(3.0))
    assert logits(run.json("explain", path)) == [3.0]
