"""Every text of the command line by key, with English and Chinese side by side."""

from softscope._text import Text
from softscope.cli.words.checkup import CHECKUP
from softscope.cli.words.claims import CLAIMS
from softscope.cli.words.experiment import EXPERIMENT
from softscope.cli.words.explain import EXPLAIN
from softscope.cli.words.glossary import GLOSSARY
from softscope.cli.words.homework import HOMEWORK
from softscope.cli.words.lab import LAB
from softscope.cli.words.model import MODEL
from softscope.cli.words.program import PROGRAM
from softscope.cli.words.record import RECORD
from softscope.cli.words.sentences import SENTENCES
from softscope.cli.words.site import SITE
from softscope.cli.words.tour import TOUR
from softscope.cli.words.watch import WATCH

WORDS: dict[str, Text] = {
    **PROGRAM,
    **EXPLAIN,
    **SENTENCES,
    **TOUR,
    **EXPERIMENT,
    **CLAIMS,
    **CHECKUP,
    **MODEL,
    **RECORD,
    **WATCH,
    **HOMEWORK,
    **GLOSSARY,
    **LAB,
    **SITE,
}
