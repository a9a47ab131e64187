"""What the doctor says, written down: as a page, as JSON, and as lines of text."""

from softscope.doctor.report.as_json import document
from softscope.doctor.report.as_text import Line, lines
from softscope.doctor.report.page import page

__all__ = ["Line", "document", "lines", "page"]
