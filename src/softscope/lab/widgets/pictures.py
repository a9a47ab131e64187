"""The five widgets: Python declares their traits; the JavaScript next to this file draws and computes."""

from __future__ import annotations

import pathlib
import re

import anywidget
import traitlets

from softscope._text import LANGS

FOLDER = pathlib.Path(__file__).parent


def source(name: str) -> str:
    """Join one picture's maths, drawing and picture code into one module, because a widget cannot import."""
    shared = "\n".join((FOLDER / part).read_text(encoding="utf-8") for part in ("maths.js", "drawing.js"))
    return re.sub(r"^export ", "", shared, flags=re.MULTILINE) + (FOLDER / f"{name}.js").read_text(encoding="utf-8")


class _Picture(anywidget.AnyWidget):
    """The base of all pictures: a language and a style."""

    _css = (FOLDER / "style.css").read_text(encoding="utf-8")
    lang = traitlets.Enum(LANGS, "en").tag(sync=True)


def _numbers(*default: float) -> traitlets.List:
    return traitlets.List(traitlets.Float(), list(default)).tag(sync=True)


def _matrix() -> traitlets.List:
    return traitlets.List(traitlets.List(traitlets.Float())).tag(sync=True)


def _words() -> traitlets.List:
    return traitlets.List(traitlets.Unicode()).tag(sync=True)


class SoftmaxWidget(_Picture):
    """Draggable logits, with their weights, s(1−s), temperature and entropy."""

    _esm = source("softmax")
    logits = _numbers(1.0, 2.0, 3.0)
    temperature = traitlets.Float(1.0).tag(sync=True)


class StepsWidget(_Picture):
    """Draggable scores, their exponentials as bars, and the bars as one of length 1."""

    _esm = source("steps")
    logits = _numbers(0.0, 1.0, 2.0)


class JacobianWidget(_Picture):
    """The matrix ∂sᵢ/∂xⱼ for logits times a gain."""

    _esm = source("jacobian")
    logits = _numbers(1.0, 0.5, 0.0, -0.5)
    gain = traitlets.Float(1.0).tag(sync=True)


class ScalingWidget(_Picture):
    """Dot products of random d-component vectors, and what softmax makes of them with and without 1/√d."""

    _esm = source("scaling")
    dimension = traitlets.Int(16).tag(sync=True)
    seed = traitlets.Int(1).tag(sync=True)


class AttentionWidget(_Picture):
    """Attention one step at a time, for q, k (n × d) and v (n × dv) given as lists of rows.

    `tokens` names the n rows and `parts` the d components; either may be empty.
    """

    _esm = source("attention")
    tokens = _words()
    parts = _words()
    q = _matrix()
    k = _matrix()
    v = _matrix()
    step = traitlets.Int(0).tag(sync=True)
    causal = traitlets.Bool(False).tag(sync=True)
    scaled = traitlets.Bool(True).tag(sync=True)
