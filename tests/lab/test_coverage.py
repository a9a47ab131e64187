"""Every behaviour described in the source texts is shown by a cell in some lesson, and a comment there names it."""

import pathlib
import re

from lab.notebooks import PAGES

WANTED = (pathlib.Path(__file__).parent / "behaviours.txt").read_text("utf-8").split()


def test_every_behaviour_is_shown_somewhere():
    shown = {}
    for path in PAGES:
        for line in path.read_text("utf-8").splitlines():
            if re.fullmatch(r"    #( F\d-\d+)+", line):
                for name in line.split()[1:]:
                    shown.setdefault(name, path.stem)
    assert len(WANTED) == len(set(WANTED)) == 57
    assert sorted(set(WANTED) - shown.keys()) == []
    assert sorted(shown.keys() - set(WANTED)) == []
    assert len(set(shown.values())) >= 8
