"""Every reason why a module was not read is said in both languages, also from a record, which keeps one."""

import re

import pytest
import torch

import softscope as ss
from softscope._text import same
from softscope.doctor.judge.diagnosis import diagnose
from softscope.doctor.listen import reasons
from softscope.doctor.report.as_text import lines
from softscope.doctor.report.page import page

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("reason", reasons.ALL, ids=lambda reason: reason.en)
def test_a_reason_is_found_again_from_its_english(reason):
    values = ["a{}b", "4\n(.*)"][: reason.en.count("{}")]
    assert reason.zh.count("{}") == reason.en.count("{}")
    assert reasons.in_both(reason.en.format(*values)) == reason.format(*values)
    assert CHINESE.search(reason.zh)
    assert not CHINESE.search(reason.en)


def test_another_sentence_stays_as_it_is():
    assert reasons.in_both("somebody's own words") == same("somebody's own words")


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
    assert any(reasons.SILENT.zh in line.text for line in lines(found, "zh"))
    assert not any(reasons.SILENT.en in line.text for line in lines(found, "zh"))
    assert any(reasons.SILENT.en in line.text for line in lines(found, "en"))
    written = page([found])
    assert reasons.SILENT.zh in written
    assert reasons.SILENT.en in written
