"""Whether a text in both languages uses the words of the glossary."""

from __future__ import annotations

import re

from softscope.lab.glossary.terms import TERMS

_CODE = re.compile(r"`[^`]*`|\{[^{}]*\}|\b\w+\.\w+\b|--\w+")  # names and places for values are no words


def disagreements(*, zh: str, en: str) -> list[str]:
    """What is wrong with the words of a text pair, one sentence each; [] if nothing is.

    Where the English text uses a term, the Chinese must use its word for it, and none that the glossary avoids.

    >>> disagreements(zh="降低温度，权重更尖锐", en="a lower temperature sharpens the weights")
    []
    >>> disagreements(zh="打分很大", en="the logits are large")[0]
    'logit is 分数 in Chinese, but 打分 stands there: 打分很大'
    """
    complaints = []
    words = _CODE.sub(" ", en)
    for term in TERMS:
        if not term.pattern.search(words):
            continue
        wrong = [found[0] for found in (re.search(pattern, zh) for pattern in term.avoid) if found]
        complaints += [f"{term.en} is {term.zh} in Chinese, but {word} stands there: {zh}" for word in wrong]
        if wrong or term.loose:
            continue
        if not any(word.lower() in zh.lower() for word in (term.zh, *term.also)):
            complaints.append(f"{term.en} is {term.zh} in Chinese, which is missing: {zh} ({en})")
    return complaints
