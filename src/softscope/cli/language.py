"""Choose the language: --lang, or else the locale's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softscope._text import LANGS, Lang
from softscope.cli.problems import UsageError, shown
from softscope.cli.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def of_locale(environ: Mapping[str, str]) -> Lang:
    """Return the language of the first variable set, in POSIX order.

    >>> of_locale({"LANG": "zh_CN.UTF-8"}), of_locale({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}), of_locale({})
    ('zh', 'en', 'en')
    """
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if environ.get(name):
            return "zh" if environ[name].lower().startswith(("zh", "chinese")) else "en"
    return "en"


def asked_for(argv: Sequence[str]) -> Lang | None:
    """Return the language --lang names; we need it before the parser exists, because parser errors use it too.

    >>> asked_for(["explain", "1", "--lang", "zh"]), asked_for(["--lang=en"]), asked_for(["--lang", "fr"])
    ('zh', 'en', None)
    """
    found: Lang | None = None
    for i, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name == "--lang":
            value = value if equals else "".join(argv[i + 1 : i + 2])
            found = next((lang for lang in LANGS if lang == value), found)
    return found


def checked(value: str) -> Lang:
    """Check the value of --lang.

    >>> checked("zh")
    'zh'
    """
    for lang in LANGS:
        if value == lang:
            return lang
    raise UsageError("lang.unknown", value=shown(value))


def say(lang: Lang, key: str, **values: Any) -> str:
    """Return the words for `key` in the language, with the values filled in; a value may be a Text itself.

    >>> say("en", "source.file", name="x.npy"), say("zh", "source.file", name="x.npy")
    (' from x.npy', '，来自 x.npy')
    """
    return WORDS[key].format(**values).of(lang)
