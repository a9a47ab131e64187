"""Records store a reason's code and values; old ones stored an English sentence, still shown in both languages."""

import sqlite3

import pytest

from doctor.record.runs import SITES, snapshot
from softscope._text import LANGS
from softscope.doctor.diagnosis import diagnose
from softscope.doctor.listen.reasons import SENTENCES, TOLD, Reason
from softscope.doctor.record import Record, read_record
from softscope.doctor.record.reasons_in_file import _OLD_SENTENCES, reason_as_text, reason_of_text
from softscope.doctor.report.as_json import document
from softscope.doctor.report.as_text import lines

# Verbatim from older records.
OLD = {
    "its name says attention, but no call was seen in it": Reason("silent"),
    "no forward pass of the model was seen; if it is called inside compiled code, pass the compiled module": Reason(
        "no_pass"
    ),
    "its gradient: the model computes this part without one and again in the backward pass, where it is not read; "
    "checkpoint with use_reentrant=False": Reason("no_gradient"),
    "it had 4 heads in one pass and 8 in another": Reason("heads", ("4", "8")),
    "its keys or values were changed in place before the backward pass": Reason("changed"),
    "additive attention has no q·k to read": Reason("additive"),
    "nested tensors are not read": Reason("nested"),
    "a mask of type BlockMask is not read; use sdpa or eager": Reason("mask", ("BlockMask",)),
    "a position bias inside a kernel is not read; use sdpa or eager": Reason("bias"),
    "reading it failed: ValueError: a{}b\n(.*)": Reason("failed", ("ValueError: a{}b\n(.*)",)),
    "somebody's own words": Reason(TOLD, ("somebody's own words",)),
}


def test_every_reason_of_before_is_here():
    assert {reason.code for reason in OLD.values()} == _OLD_SENTENCES.keys() | {TOLD}
    assert _OLD_SENTENCES.keys() <= SENTENCES.keys()


@pytest.fixture
def old_record(tmp_path):
    """A record from the time when reasons were stored as sentences."""
    path = tmp_path / "run.db"
    with Record(path) as record:
        record.sites(SITES)
        record.add(snapshot(0))
    with sqlite3.connect(path) as database:
        rows = [(1, f"layers.{i}", sentence) for i, sentence in enumerate(OLD)]
        database.executemany("INSERT INTO unseen VALUES (?, ?, ?)", rows)
    database.close()
    return path


def test_an_old_record_says_its_reasons_in_both_languages(old_record):
    found = read_record(old_record)
    assert found.unseen == tuple((f"layers.{i}", reason) for i, reason in enumerate(OLD.values()))
    diagnosis = diagnose(found)
    for lang in LANGS:
        said = {line.text for line in lines(diagnosis, lang)}
        assert all(f"layers.{i}: {reason.text.of(lang)}" in said for i, reason in enumerate(OLD.values()))
    (case,) = document([diagnosis])["cases"]
    wanted = [(f"layers.{i}", str(reason)) for i, reason in enumerate(OLD.values())]
    assert [(one["name"], one["why"]) for one in case["unseen"]] == wanted


@pytest.mark.parametrize("code", SENTENCES)
def test_a_reason_comes_back_from_the_file(code):
    values = ("a|b", '["silent"]')[: SENTENCES[code].en.count("{}")]
    assert reason_of_text(reason_as_text(Reason(code, values))) == Reason(code, values)


@pytest.mark.parametrize(
    "text",
    ['["from_a_later_softscope", "x"]', '["heads", "4"]', '["heads", 4, 8]', "[]", "{}", "7", '"silent"', "", "[["],
)
def test_what_is_no_code_of_ours_is_a_sentence(text):
    assert reason_of_text(text) == Reason(TOLD, (text,))
