"""The report: everything about a model as plain data, and as one HTML file to open."""

from treelens.report.render import write_report
from treelens.report.summary import summarize

__all__ = ["summarize", "write_report"]
