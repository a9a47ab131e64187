"""Every exercise accepts right answers and rejects wrong ones, each for its own reason, in both languages."""

import re

import numpy as np
import pytest

from lab.homework.answers import NUMPY, RIGHT, WRONG
from softscope._text import Text
from softscope.lab import homework
from softscope.lab.homework import EXERCISES, IDS, Exercise, Quiz
from softscope.lab.homework.answer_process import Answer
from softscope.lab.homework.rule import Rule
from softscope.lab.homework.trial import Trial

CHINESE = re.compile(r"[\u4e00-\u9fff]")
WRONG_ONES = [(name, which) for name in WRONG for which in WRONG[name]]


def test_every_exercise_has_right_answers_and_three_wrong_ones():
    assert set(RIGHT) == set(WRONG) == set(IDS)
    assert len(IDS) == len(set(IDS)) == 8
    for name in IDS:
        assert len(RIGHT[name]) >= 2
        assert len(WRONG[name]) >= 3
        assert len({wrong.breaks for wrong in WRONG[name].values()}) >= 3, "each for its own reason"
        assert len({wrong.source for wrong in WRONG[name].values()}) == len(WRONG[name]), "a replacement did nothing"
        assert not {wrong.source for wrong in WRONG[name].values()} & set(RIGHT[name]), "a replacement did nothing"


@pytest.mark.parametrize(("name", "which"), [(name, i) for name in RIGHT for i in range(len(RIGHT[name]))])
def test_a_right_answer_passes(name, which):
    for seed in (0, 1):
        grade = homework.grade(
            name, NUMPY + RIGHT[name][which] if name != "dividing-by-the-sum" else RIGHT[name][which], seed=seed
        )
        assert grade.messages == ()
        assert grade.passed
        assert grade.seed == seed
        assert grade.notice == homework.find(name).notice.en


@pytest.mark.parametrize(("name", "which"), WRONG_ONES)
def test_a_wrong_answer_is_told_what_it_breaks(name, which):
    wrong = WRONG[name][which]
    source = wrong.source if name == "dividing-by-the-sum" else NUMPY + wrong.source
    grade = homework.grade(name, source, seed=5)
    assert not grade.passed
    assert grade.broken[0] == wrong.breaks, grade.messages
    assert wrong.says in grade.messages[0]
    assert grade.notice == ""
    assert 1 <= len(grade.messages) == len(grade.broken) <= 4
    chinese = homework.grade(name, source, seed=5, lang="zh")
    assert chinese.broken == grade.broken
    assert all(CHINESE.search(message) for message in chinese.messages)
    assert not any(CHINESE.search(message) for message in grade.messages)


@pytest.mark.parametrize("name", IDS)
def test_messages_show_their_input_and_the_same_seed_the_same_one(name):
    if isinstance(homework.find(name), Quiz):
        return
    wrong = next(iter(WRONG[name].values()))
    one, other = (homework.grade(name, NUMPY + wrong.source, seed=11) for _ in range(2))
    assert one.messages == other.messages
    assert any(" Input: " in message for message in one.messages)


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_the_starter_runs_and_does_not_pass(exercise):
    if isinstance(exercise, Quiz):
        return
    for lang in ("zh", "en"):
        grade = homework.grade(exercise.id, exercise.starter.of(lang), seed=0, lang=lang)
        assert not grade.passed
        assert not {"syntax", "missing", "raised"} & set(grade.broken)
        assert bool(CHINESE.search(exercise.starter.of(lang))) == (lang == "zh")


def test_the_input_shown_is_short():
    """If a function is wrong only from length 4 on, the input shown is four round numbers."""
    source = NUMPY + (
        "def log_softmax(x):\n    y = x - x.max()\n    return y - np.log(np.exp(y).sum()) + (len(x) > 3) * 0.5"
    )
    grade = homework.grade("log-softmax", source, seed=8)
    shown = re.search(r"x = \[(.*?)\]", grade.messages[0])[1]
    assert len(shown.split(",")) == 4
    assert all(float(number) == round(float(number)) for number in shown.split(","))


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_states_that_overflow_are_told_so_and_not_that_two_orders_differ(lang):
    exercise = homework.find("online-softmax")
    grouping = next(check for check in exercise.checks if check.name == "grouping")
    with Answer(NUMPY + WRONG["online-softmax"]["naive"].source) as answer:
        (problem,) = grouping(Trial(answer, 0, lang))
    says = {"en": "a, b and a give inf instead of 100", "zh": "a、b、a 合起来得到 inf，应当是 100"}
    assert says[lang] in problem.sentence
    assert "1000]" in problem.sentence or "1001]" in problem.sentence
    assert not re.search("inf (and|和) inf", problem.sentence)


def test_a_large_input_is_told_in_the_language_of_the_sentence():
    rule = Rule(
        "all", Text(zh="甲", en="A"), ("x",), lambda _: [(np.zeros((32, 64)),)], lambda *_: Text(zh="乙", en="B")
    )
    told = {lang: next(rule(Trial(None, 0, lang))).sentence for lang in ("en", "zh")}
    assert told["en"].endswith("x = 32 × 64 numbers")
    assert told["zh"].endswith("x = 32 × 64 个数")


def texts(exercise):
    """Every text of an exercise in both languages, with its location."""
    yield "title", exercise.title
    yield "task", exercise.task
    yield "notice", exercise.notice
    yield from (("hint", hint) for hint in exercise.hints)
    if isinstance(exercise, Exercise):
        yield "starter", exercise.starter
    else:
        for question in exercise.questions:
            yield "question", question.asks
            for choice in question.choices:
                yield "choice", choice.says
                yield "reason", choice.reason


@pytest.mark.parametrize("exercise", EXERCISES, ids=IDS)
def test_both_languages_say_as_much(exercise):
    for place, text in texts(exercise):
        assert text.zh
        assert text.en
        assert CHINESE.search(text.zh) or text.zh == "log-softmax", (place, text.zh)
        assert not CHINESE.search(text.en), (place, text.en)
        assert text.zh.count("\n") == text.en.count("\n"), (place, text)
        assert re.findall(r"\d+(?:\.\d+)?", text.zh) == re.findall(r"\d+(?:\.\d+)?", text.en) or place == "task", place
    assert len(exercise.hints) >= 2
    assert exercise.minutes > 0


@pytest.mark.parametrize("exercise", [e for e in EXERCISES if isinstance(e, Exercise)], ids=lambda e: e.id)
def test_starter_defines_what_is_asked(exercise):
    for lang in ("zh", "en"):
        for function in exercise.functions:
            assert f"def {function}:" in exercise.starter.of(lang)
            assert function.partition("(")[0] in exercise.task.of(lang)
    assert exercise.file.endswith(".py")


def test_hints_do_not_hold_the_whole_answer():
    for exercise in EXERCISES:
        for hint in exercise.hints:
            assert "return" not in hint.en
            assert "def " not in hint.en


@pytest.mark.parametrize("question", range(4))
def test_the_quiz_is_right_about_its_own_question(question):
    quiz = homework.find("dividing-by-the-sum")
    asked = quiz.questions[question]
    assert asked.proof()
    assert sum(choice.right for choice in asked.choices) == 1
    assert RIGHT[quiz.id][0].split()[question] == asked.right
    assert all(choice.reason.en.startswith("Right") == choice.right for choice in asked.choices)
    assert all(choice.reason.zh.startswith("对") == choice.right for choice in asked.choices)


def test_right_choices_do_not_stand_in_one_place():
    assert len({question.right for question in homework.find("dividing-by-the-sum").questions}) > 1


def test_finding_an_exercise():
    assert homework.find("1") is homework.find("softmax") is homework.find(" SOFTMAX ")
    assert [homework.number(e) for e in EXERCISES] == list(range(1, 9))
    for wrong in ("0", "9", "", "-1", "softmaxx"):
        with pytest.raises(KeyError, match="there is no exercise"):
            homework.find(wrong)


def test_a_seed_is_drawn_and_told():
    seeds = {homework.grade("dividing-by-the-sum", "c a b c").seed for _ in range(20)}
    assert len(seeds) > 10


def test_the_answers_here_need_no_more_than_numpy():
    assert np.__name__ in NUMPY
