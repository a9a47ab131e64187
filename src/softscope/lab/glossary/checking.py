"""Check that a bilingual text uses the glossary's words."""

from __future__ import annotations

import re

from softscope.lab.glossary.terms import TERMS

_CODE = re.compile(r"`[^`]*`|\{[^{}]*\}|\b\w+\.\w+\b|--\w+")  # names and placeholders are not words


def disagreements(*, zh: str, en: str) -> list[str]:
    """List what is wrong with the words of a text pair, one sentence each; [] if nothing is.

    If the English text uses a term, the Chinese must use the glossary's word for it, and no word the glossary avoids.

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
