"""The report: everything about a model as plain data, and as one HTML file to open."""

from treelens.report.evidence_page import write_evidence_report
from treelens.report.evidence_summary import summarize_evidence
from treelens.report.render import write_report
from treelens.report.summary import summarize

__all__ = ["summarize", "summarize_evidence", "write_evidence_report", "write_report"]
