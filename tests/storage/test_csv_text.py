"""CSV that no spreadsheet runs, and that keeps everything else as it is."""

import pandas as pd
import pytest

from treelens.storage.files import csv_text, harmless

FORMULAS = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1",
            "\u00a0@a", "-", "+", "-1e5x", "--1", "+-1"]  # fmt: skip


@pytest.mark.parametrize("text", FORMULAS)
def test_text_that_begins_like_a_formula_is_marked(text):
    assert harmless(text) == "'" + text


@pytest.mark.parametrize("text", ["CCO", "[Na+].[Cl-]", "C=C", "-1", "+1", "-0.5", "+1.5e-3", ".5",
                                  "", "a-b", "'quoted", " C=C", "\u200b", "ü=1", -1.5, None,
                                  3])  # fmt: skip
def test_numbers_smiles_and_other_text_stay(text):
    assert harmless(text) is text


def test_numbers_of_a_table_are_written_bit_for_bit():
    table = pd.DataFrame({"x": [0.1 + 0.2, -1e-300], "n": [1, -2], "name": ["a", None]})
    assert csv_text(table, index=False) == table.to_csv(index=False, lineterminator="\n")


def test_columns_and_lone_surrogates():
    table = pd.DataFrame({"=1": ["a\udc80"]}, index=pd.Index(["@x"], name="id"))
    assert csv_text(table, index=True) == "id,'=1\n'@x,a\\udc80\n"
