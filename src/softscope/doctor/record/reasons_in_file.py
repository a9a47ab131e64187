"""How a record stores a reason: code and values as a JSON list; free text as it is.

Older records hold English sentences. This file keeps them as they were, since today's sentences may change.
"""

from __future__ import annotations

import json
import re

from softscope.doctor.listen import reasons
from softscope.doctor.listen.reasons import SENTENCES, TOLD, Reason

_OLD_SENTENCES = {
    reasons.SILENT: "its name says attention, but no call was seen in it",
    reasons.NO_PASS: "no forward pass of the model was seen; if it is called inside compiled code, pass the compiled "
    "module",
    reasons.NO_GRADIENT: "its gradient: the model computes this part without one and again in the backward pass, where "
    "it is not read; checkpoint with use_reentrant=False",
    reasons.HEADS: "it had {} heads in one pass and {} in another",
    reasons.CHANGED: "its keys or values were changed in place before the backward pass",
    reasons.ADDITIVE: "additive attention has no q·k to read",
    reasons.NESTED: "nested tensors are not read",
    reasons.MASK: "a mask of type {} is not read; use sdpa or eager",
    reasons.BIAS: "a position bias inside a kernel is not read; use sdpa or eager",
    reasons.FAILED: "reading it failed: {}",
}


def reason_as_text(reason: Reason | str) -> str:
    """The text stored in the file.

    >>> reason_as_text(Reason(reasons.HEADS, ("4", "8"))), reason_as_text("a kernel of its own")
    ('["heads", "4", "8"]', 'a kernel of its own')
    """
    if isinstance(reason, str):
        return reason
    return reason.values[0] if reason.code == TOLD else json.dumps([reason.code, *reason.values])


def reason_of_text(text: str) -> Reason:
    """Parse the reason stored in the file, whoever wrote it; anything that is not one of our codes is free text.

    >>> reason_of_text('["heads", "4", "8"]')
    Reason(code='heads', values=('4', '8'))
    """
    try:
        code, *values = json.loads(text)
        if SENTENCES[code].en.count("{}") == len(values) and all(isinstance(value, str) for value in values):
            return Reason(code, tuple(values))
    except (ValueError, TypeError, KeyError, RecursionError):  # free text, or a code from a later softscope
        pass
    return reason_of_old_sentence(text)


def reason_of_old_sentence(sentence: str) -> Reason:
    """The reason for an English sentence of an older softscope; any other sentence stays free text.

    >>> reason_of_old_sentence("it had 4 heads in one pass and 8 in another").text.zh
    '它在一次传播里有 4 个头，另一次有 8 个'
    """
    for code, written in _OLD_SENTENCES.items():
        found = re.fullmatch(re.escape(written).replace(r"\{\}", "(.*)"), sentence, re.DOTALL)
        if found:
            return Reason(code, found.groups())
    return Reason(TOLD, (sentence,))
