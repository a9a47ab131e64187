"""Formulas become MathML: those of every lesson, and the shapes that they are made of."""

import re
import xml.etree.ElementTree as ET

import pytest

from lab.notebooks import PAGES, said
from softscope.site.lessons.tex import mathml


def formulas():
    for path in PAGES:
        for text in said(path):
            for language in (text.zh, text.en):
                for display, inline in re.findall(r"\$\$(.+?)\$\$|\$([^$\n]+?)\$", language, re.DOTALL):
                    yield display or inline


def shape(source):
    """The tags and texts of a formula, without its attributes."""

    def of(element):
        return f"{element.tag}({element.text or ''}{','.join(map(of, element))})"

    return ",".join(map(of, ET.fromstring(mathml(source))))


def test_every_formula_of_the_lessons_is_known():
    found = set(formulas())
    assert len(found) > 40
    for source in found:
        ET.fromstring(mathml(source))


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (r"s_i", "msub(mi(s),mi(i))"),
        (r"e^{-x_j/T}", "msup(mi(e),mrow(mo(−),msub(mi(x),mi(j)),mo(/),mi(T)))"),
        (r"\frac{a}{1 + a}", "mfrac(mi(a),mrow(mn(1),mo(+),mi(a)))"),
        (r"\sum_{i=1}^{d} 1", "munderover(mo(∑),mrow(mi(i),mo(=),mn(1)),mi(d)),mn(1)"),
        (r"K^{\mathsf T}", "msup(mi(K),mi(T))"),
        (r"\mathbb E[q]", "mi(𝔼),mo([),mi(q),mo(])"),
        (r"s_{\text{right}}", "msub(mi(s),mtext(right))"),
        (r"a'", "msup(mi(a),mo(′))"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}",
         "mrow(mo((),mtable(mtr(mtd(mn(1)),mtd(mn(2))),mtr(mtd(mn(3)),mtd(mn(4)))),mo()))"),
    ],
)  # fmt: skip
def test_shapes(source, wanted):
    assert shape(source) == wanted


@pytest.mark.parametrize("source", [r"\nosuchcommand x", "{a", "a}", r"\frac{1}"])
def test_what_it_cannot_read_is_an_error_and_no_formula_is_lost(source):
    with pytest.raises(ValueError, match="a formula"):
        mathml(source)
