"""The record of a run: one SQLite file, written while the model trains, readable at any moment."""

from softscope.doctor.record.export import export
from softscope.doctor.record.problems import RecordError, RecordNotFoundError, RecordWarning
from softscope.doctor.record.read import News, news, read_record
from softscope.doctor.record.write import Record

__all__ = ["News", "Record", "RecordError", "RecordNotFoundError", "RecordWarning", "export", "news", "read_record"]
