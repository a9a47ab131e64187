"""The text of `explain` says what was measured, in both languages, and fits the terminal."""

import re

import numpy as np
import pytest

from cli.commands import MAPS, RIVALS, columns
from softscope._text import LANGS

ROWS = ([2.0, 2.1, 2.2], [-3, -1, 0, 1, 3], [0, 50], [7], [4, 4, 4], [1, 5, 5], [1e308, -1e308], [-2, -1], [0.001, 1e7])


def flat(text):
    return re.sub(r"\s+", " ", text)


def test_three_close_numbers(run):
    text = flat(run.text("explain", 2.0, 2.1, 2.2, "--temperature", 0.5))
    assert "softmax · T = 0.5 · 3 numbers" in text
    assert "Number 3 (2.2) is the largest. It is 0.1 above number 2 (2.1)" in text
    assert "gets 1.22 times the weight: 40.2% against 32.9%" in text  # e^(0.1/0.5) = 1.2214
    assert "as if 2.96 of the 3 numbers shared it evenly" in text
    assert "T = 0.5 is sharper: effective support 2.99 → 2.96, largest weight 36.7% → 40.2%" in text
    assert "strongest at number 3, 0.24: change that number by 0.005 and its weight changes by about 0.0024" in text


def test_three_close_numbers_in_chinese(run):
    text = re.sub(r"\s", "", run.text("explain", 2.0, 2.1, 2.2, "--temperature", 0.5, "--lang", "zh"))
    assert "第3个数（2.2）最大。它比第2个数（2.1）大0.1" in text
    assert "1.22倍：40.2%对32.9%" in text
    assert "T=0.5更尖锐：有效支撑数2.99→2.96，最大权重36.7%→40.2%" in text


def test_bars_are_as_long_as_weights(run):
    lines = run.text("explain", 1, 2, 3).splitlines()
    bars = [re.sub(r"[^█▏▎▍▌▋▊▉]", "", line) for line in lines[3:6]]
    eighths = [sum(8 if c == "█" else "▏▎▍▌▋▊▉".index(c) + 1 for c in bar) for bar in bars]
    full = 8 * len(re.search(r"0 +1", lines[2])[0])
    assert eighths == pytest.approx([full * w for w in (0.0900, 0.2447, 0.6652)], abs=0.51)


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("width", [50, 60, 120])
def test_lines_fit(run, monkeypatch, lang, width):
    monkeypatch.setenv("COLUMNS", str(width))
    tables = 0
    for x in ROWS:
        for name in MAPS:
            for T in (0.5, 1):
                lines = run.text("explain", *x, "--map", name, "-T", T, "--lang", lang).splitlines()
                assert all(columns(line) <= min(width, 100) for line in lines), lines
                assert all(line == line.rstrip() for line in lines)
                tables += 1
    assert tables == len(ROWS) * len(MAPS) * 2


def wide(line):
    """The line with exactly one character per terminal column."""
    return "".join(c + "\0" if columns(c) == 2 else c for c in line)


@pytest.mark.parametrize("lang", LANGS)
def test_columns_stand_under_their_titles(run, lang):
    lines = run.text("explain", 2.0, -10.25, 2.2, "-T", 2, "--lang", lang).splitlines()
    title, rows = wide(lines[2]), [wide(line) for line in lines[3:6]]
    last = title.index("T = 1") if lang == "zh" else title.index("at T = 1")
    logits_end = title.index("分\0数\0" if lang == "zh" else "logit") + (4 if lang == "zh" else 5)
    logits_end = max(logits_end, rows[1].index("-10.25") + len("-10.25"))
    for row in rows:
        assert re.match(r"\d", row[last]), row
        assert row[logits_end - 1].isdigit()
        assert row[logits_end] == " "
    assert rows[0].index("2.00") == rows[2].index("2.20")


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", RIVALS)
def test_rivals_are_said_to_be_rivals(run, name, lang):
    text = flat(run.text("explain", 1, 2, 4, "--map", name, "--lang", lang))
    assert {"en": "not part of the library", "zh": "不属于本库"}[lang] in text
    assert {"en": "not part of the library", "zh": "不属于本库"}[lang] not in run.text("explain", 1, 2, "--lang", lang)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["-1", "1", "--map", "linear"], "The numbers sum to 0"),
        (["-1", "-2", "--map", "relu"], "No number is above 0"),
        (["-1", "3", "--map", "linear"], "1 of the 2 weights are negative"),
        (["-5", "1", "2", "--map", "linear"], "the largest number gets the smallest weight"),
        (["1", "2", "--map", "sigmoid"], "Its weights sum to 1.612, not 1"),
        (
            ["1", "3", "--map", "linear"],
            "its weights change by up to 8.3%; the weights of softmax change by 0%",
        ),  # 3/4 − 4/6
        (["1", "2", "--map", "hardmax"], "The slope is 0 everywhere"),
        (["1", "2", "--map", "hardmax", "-T", "2"], "The temperature changes nothing"),
        (["1", "3", "--map", "linear"], "Changing the temperature would not help"),
        (["1", "2", "2.5", "--map", "sparsemax"], "Weights that are exactly 0: 1 of 3"),
        (["0", "2000"], "Weights too small for a floating-point number, so they read 0: 1 of 2"),
        (["1", "2", "-T", "4"], "T = 4 is flatter"),
        (["1", "2", "--map", "sigmoid", "-T", "4"], "moves the weight of number 2 most: 88.1% → 62.2%"),
        (["0", "9"], "The row is saturated: all s(1−s) add up to only 0.0002"),
        (["1", "2", "3"], "At --temperature 0.5 number 3 would get 86.7% instead of 66.5%; at --temperature 2, 50.6%"),
        (["0", "100"], "At 0.5 or 2, number 2 would still get 100%,"),
        (["3"], "There is only one number, so it takes all"),
        (["0", "--map", "sigmoid"], "There is only one number; its weight is 50%"),
        (["4", "4", "4"], "All 3 numbers are equal, so each gets 33.3%"),
        (["1", "4", "4"], "2 of the 3 numbers share first place (4); each of them gets 48.8%"),
        (
            ["1", "2"],
            "It is 0.197 at every number: change one, say number 1, by 0.01, and its weight changes by about 0.002",
        ),
        (["0", "0.5", "-9"], "It is near 0 for 1 of the 3"),
        (["1", "2", "-1", "--map", "relu"], "It is 0 for 1 of the 3"),
    ],
)
def test_sentences(run, words, wanted):
    assert wanted in flat(run.text("explain", *words))


def test_no_sentence_of_what_is_not_so(run):
    assert "not 1" not in run.text("explain", 0, 0, "--map", "sigmoid")  # two halves do sum to 1
    assert "negative" not in run.text("explain", 1, 2, "--map", "linear")
    assert "exactly 0" not in run.text("explain", 1, 2, "--map", "entmax:1.5")
    assert "saturated" not in run.text("explain", 1, 2)


def test_no_sentence_of_saturation_for_a_long_even_row(run, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros(5000))
    text = flat(run.text("explain", tmp_path / "x.npy"))
    assert "saturated" not in text
    assert "near 0" not in text
    assert "as if 5e+03 of" in text or "as if 5000 of" in text


def test_long_rows_show_the_largest(run):
    x = list(range(50))
    text = run.text("explain", *x)
    assert "The 20 largest; the other 30 hold" in text
    lines = text.splitlines()
    places = [int(line.split()[0]) for line in lines[3:23]]
    assert places == list(range(50, 30, -1))
    assert "只列出最大的 20 个；其余 30 个" in run.text("explain", *x, "--lang", "zh")
    assert "there are 30 more" in run.text("explain", *x, "--map", "sigmoid")
    assert "largest;" not in run.text("explain", *x[:20])


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", MAPS)
def test_every_case_speaks_both_languages(run, name, lang):
    for x in ROWS:
        for T in (0.5, 1, 3):
            text = run.text("explain", *x, "--map", name, "-T", T, "--lang", lang)
            assert "{" not in text
            assert "nan" not in text
            assert bool(re.search(r"[\u4e00-\u9fff]", text)) == (lang == "zh")
