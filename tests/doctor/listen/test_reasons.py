"""Every reason for not reading a module is given in both languages."""

import ast
import pathlib
import re

import pytest
import torch

import softscope as ss
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.listen import reasons
from softscope.doctor.listen.observed_call import UnseenError
from softscope.doctor.listen.reasons import SENTENCES, SILENT, TOLD, Reason
from softscope.doctor.report.as_text import lines
from softscope.doctor.report.page import page

CHINESE = re.compile(r"[\u4e00-\u9fff]")
DOCTOR = pathlib.Path(reasons.__file__).parent.parent


def test_every_code_has_a_sentence():
    codes = {value for name, value in vars(reasons).items() if name.isupper() and isinstance(value, str)}
    assert codes == SENTENCES.keys()
    assert len(codes) > 10


@pytest.mark.parametrize("code", SENTENCES)
def test_a_reason_is_said_in_both_languages(code):
    sentence = SENTENCES[code]
    values = ("a{}b", "4\n(.*)")[: sentence.en.count("{}")]
    said = Reason(code, values).text
    assert sentence.zh.count("{}") == sentence.en.count("{}") == len(values)
    assert all(value in text for value in values for text in (said.zh, said.en))
    assert bool(CHINESE.search(said.zh)) == (code != TOLD)
    assert not CHINESE.search(said.en)
    assert str(Reason(code, values)) == str(UnseenError(code, *values)) == said.en


def test_every_code_is_raised_with_what_its_sentence_needs():
    """A missing value would raise only in the report, long after the run."""
    seen = set()
    for path in DOCTOR.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "UnseenError":
                code, *values = node.args
                assert SENTENCES[getattr(reasons, code.attr)].en.count("{}") == len(values), f"{path}:{node.lineno}"
                seen.add(code.attr)
    assert len(seen) >= 6


class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return x * self.weight


def test_the_report_says_it_in_both():
    model = torch.nn.Sequential(Attention())
    with ss.probe(model) as scope:
        model(torch.ones(2, 3))
    found = diagnose(scope.history())
    assert any(SENTENCES[SILENT].zh in line.text for line in lines(found, "zh"))
    assert not any(SENTENCES[SILENT].en in line.text for line in lines(found, "zh"))
    assert any(SENTENCES[SILENT].en in line.text for line in lines(found, "en"))
    written = page([found])
    assert SENTENCES[SILENT].zh in written
    assert SENTENCES[SILENT].en in written
