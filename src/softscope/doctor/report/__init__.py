"""The doctor's report: as a page, as JSON, and as lines of text.

>>> from softscope.doctor import History, diagnose, report
>>> diagnosis = diagnose(History((), ()))
>>> [line.text for line in report.lines(diagnosis, "en")][0]
'No attention was found: there is nothing to judge.'
>>> report.document([diagnosis])["schema"]
'softscope.checkup'
>>> report.page([diagnosis], "zh").startswith("<!doctype html>")
True
"""

from softscope.doctor.report.as_json import document
from softscope.doctor.report.as_text import Line, lines
from softscope.doctor.report.page import page

__all__ = ["Line", "document", "lines", "page"]
