"""The report on a fitted model: a summary as plain data, and one HTML file made from it."""

from treelens.report.summary import summarize, write_report

__all__ = ["summarize", "write_report"]
