"""Tables written for other programs: CSV, Excel with drawings of molecules, SDF, Parquet."""

from __future__ import annotations

import io
import math
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from treelens.array_checks import Columns
from treelens.chem.molecules import draw_molecule
from treelens.chem.parsing import quiet, rdkit, smiles_parser
from treelens.graphs.kinds import Painted
from treelens.storage.files import is_missing, runs_as_formula, short_number, whole_file, write_csv
from treelens.storage.parquet import parquet_file

if TYPE_CHECKING:
    import pandas as pd

MOST_DRAWN = 2000  # rows of a sheet: more drawings make spreadsheets slow
_MOST_ROWS = 2**20 - 1  # of a sheet, below its header
_MOLECULE_COLUMNS = ("smiles", "standard_smiles")
_DRAWING = "drawing"  # column of fragments, each of which draws itself
_PIXELS = (230, 150)
_PIXELS_A_CHARACTER, _POINTS_A_PIXEL = 7.2, 0.75  # units of widths and heights in Excel
_WIDEST = 48  # characters
_MEASURED = 200  # rows that widths of columns are chosen by

Append = Callable[[Columns], None]


def write_table(table: pd.DataFrame | Columns, path: str | Path, *, index: bool = False) -> Path:
    """Write a table of molecules or fragments in the format that the name of the file ends in.

    ``.xlsx`` has a drawing of each molecule (the column ``smiles``) or fragment (the column
    ``drawing``) in its first column; ``.sdf`` a record for each row, with the other columns as data
    fields; ``.parquet`` all digits; everything else is CSV. The file appears when it is whole. Text
    that a spreadsheet would run as a formula stays text.

    Parameters
    ----------
    table : DataFrame
        Such as those of ``predict_table``, ``fragments_``, :func:`treelens.suggest`.
    path : str or Path
        The file to write. Excel needs openpyxl and Pillow (the extra ``excel``).
    index : bool, default=False
        Whether the index is a column, too.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import pandas as pd
    >>> import treelens as tl
    >>> path = pathlib.Path(tempfile.mkdtemp(), "two.sdf")
    >>> table = pd.DataFrame({"smiles": ["CCO", "CCN"], "name": ["a", "b"], "pIC50": [5.25, 6.5]})
    >>> tl.write_table(table, path).read_text().count("$$$$")
    2
    """
    path = Path(path)
    if index and not isinstance(table, Columns):
        table = table.reset_index(names=table.index.name or "index")
    columns = Columns((str(name), np.asarray(column)) for name, column in table.items())
    if path.suffix.lower() != ".xlsx":
        columns.pop(_DRAWING, None)
    if path.suffix.lower() not in ENDINGS:
        write_csv(path, columns)
        return path
    numbers = {name for name, column in columns.items() if column.dtype.kind in "fiu"}
    truths = {name for name, column in columns.items() if column.dtype.kind == "b"}
    with table_file(path, numbers, truths) as append:
        append(columns)
    return path


def table_file(
    path: Path, numbers: Collection[str] = (), truths: Collection[str] = ()
) -> AbstractContextManager[Append]:
    """Open a file of one of :data:`ENDINGS`, and yield what appends rows; see ``write_table``.

    ``numbers`` are columns of floats and ``truths`` of booleans, also where a part has none.
    """
    return ENDINGS[path.suffix.lower()](path, numbers, truths)


# --- SDF ------------------------------------------------------------------------------------------


@contextmanager
def _sdf_file(path: Path, numbers: Collection[str], truths: Collection[str]) -> Iterator[Append]:
    """Yield what appends records; a row without a molecule is a record without atoms."""
    with whole_file(path) as file:

        def append(columns: Columns) -> None:
            structures = _molecule_column(columns)
            if structures is None:
                raise ValueError(
                    f"{path}: an SDF holds molecules, and this table has no column with SMILES "
                    f"({', '.join(_MOLECULE_COLUMNS)}). Write .csv or .xlsx."
                )
            _append_records(file, columns, structures)

        yield append


def _append_records(file: BinaryIO, columns: Columns, structures: str) -> None:
    from rdkit.Chem.rdDepictor import Compute2DCoords

    title = next((n for n in columns if n.casefold() in ("name", "id", "title", "compound")), None)
    parse, empty = smiles_parser(), rdkit().Mol()
    values = {name: column.tolist() for name, column in columns.items()}
    with quiet():
        for k, smiles in enumerate(values[structures]):
            molecule = None if is_missing(smiles) else parse(str(smiles))
            molecule = rdkit().Mol(molecule or empty)  # a copy: others hold the parsed one
            Compute2DCoords(molecule)
            block = rdkit().MolToMolBlock(molecule).rstrip("\n").split("\n")
            lines = [_field(values[title][k]) if title else "", *block[1:]]
            for name, column in values.items():
                text = _field(column[k])
                if text:
                    lines += [f">  <{_field(name).translate(_NOT_IN_NAMES)}>", text, ""]
            record = "\n".join([*lines, "$$$$", ""])
            file.write(record.encode("utf-8"))


_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_NAMES = str.maketrans("<>", "()")


def _field(value: object) -> str:
    """Return a value on one line that ends no record and begins no field."""
    if is_missing(value):
        return ""
    text = str(short_number(value) if isinstance(value, float) else value)
    text = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))
    return f"'{text}" if text.startswith(("$$$$", ">")) else text


def _molecule_column(columns: Columns) -> str | None:
    return next((name for name in _MOLECULE_COLUMNS if name in columns), None)


# --- Excel ----------------------------------------------------------------------------------------


@contextmanager
def _excel_file(path: Path, numbers: Collection[str], truths: Collection[str]) -> Iterator[Append]:
    """Yield what appends rows with drawings; the sheet is written at the end."""
    try:
        import openpyxl
        import PIL  # noqa: F401  (openpyxl needs it for pictures)
    except ImportError as error:
        raise ImportError(
            f"Writing {path} needs openpyxl and Pillow: pip install openpyxl pillow."
        ) from error
    book = openpyxl.Workbook()
    sheet = book.active
    is_drawn = False
    with whole_file(path) as file:

        def append(columns: Columns) -> None:
            nonlocal is_drawn
            first = sheet.max_row + 1
            if first + columns.n_rows - 2 > _MOST_ROWS:
                raise ValueError(
                    f"{path}: a sheet holds at most {_MOST_ROWS:,} rows. Write .csv or .parquet."
                )
            is_drawn = _append_rows(sheet, columns, first)

        yield append
        if is_drawn and sheet.max_row - 1 > MOST_DRAWN:
            warnings.warn(
                f"{path}: the first {MOST_DRAWN:,} of {sheet.max_row - 1:,} rows have drawings.",
                UserWarning,
                stacklevel=3,
            )
        book.save(file)


def _append_rows(sheet: Any, columns: Columns, first: int) -> bool:
    """Write rows from line ``first`` on, and drawings at the left; return whether there are any."""
    from openpyxl.drawing.image import Image
    from openpyxl.styles import Alignment, Font
    from openpyxl.utils import get_column_letter

    draw = _drawer(columns)
    left = 0 if draw is None else 1
    shown = {name: column.tolist() for name, column in columns.items() if name != _DRAWING}
    if first == 2:
        for position, (name, column) in enumerate(shown.items(), start=1 + left):
            _write(sheet.cell(1, position), name).font = Font(bold=True)
            longest = max(len(str(_shown(x))) for x in (name, *column[:_MEASURED]))
            letter = get_column_letter(position)
            sheet.column_dimensions[letter].width = min(longest + 2, _WIDEST)
        sheet.freeze_panes = sheet.cell(2, 1 + left)
        if draw is not None:
            _write(sheet.cell(1, 1), "structure").font = Font(bold=True)
            sheet.column_dimensions["A"].width = _PIXELS[0] / _PIXELS_A_CHARACTER
    for position, column in enumerate(shown.values(), start=1 + left):
        for k, value in enumerate(column):
            cell = _write(sheet.cell(first + k, position), value)
            cell.alignment = Alignment(vertical="center", wrap_text=isinstance(value, str))
    if draw is None:
        return False
    for k in range(min(columns.n_rows, MOST_DRAWN + 2 - first)):
        sheet.row_dimensions[first + k].height = _PIXELS[1] * _POINTS_A_PIXEL
        picture = draw(k)
        if picture is not None:
            image = Image(io.BytesIO(picture))
            image.width, image.height = _PIXELS
            sheet.add_image(image, f"A{first + k}")
    return True


def _drawer(columns: Columns) -> Callable[[int], bytes | None] | None:
    """Return what draws a row as PNG, or None where no column can be drawn."""
    width, height = _PIXELS
    if _DRAWING in columns:
        pictures = columns[_DRAWING].tolist()
        return lambda k: pictures[k].draw(width=width, height=height, format="png")
    if (name := _molecule_column(columns)) is None:
        return None
    texts, parse = columns[name].tolist(), smiles_parser()

    def draw(k: int) -> bytes | None:
        with quiet():
            molecule = None if is_missing(texts[k]) else parse(str(texts[k]))
            if molecule is None:
                return None
            size = (width * 3 // 2, height * 3 // 2)  # sharp where a sheet is enlarged
            drawn = draw_molecule(molecule, Painted({}, {}), size, "png")
        assert isinstance(drawn, bytes)
        return drawn

    return draw


def _write(cell: Any, value: object) -> Any:
    """Write a value to a cell; text is text, whatever it begins with."""
    cell.value = value = _shown(value)
    if isinstance(value, str):
        cell.data_type = "s"
        cell.quotePrefix = runs_as_formula(value)  # stays text when somebody edits the cell
    return cell


def _shown(value: object) -> object:
    """Return what a cell can hold: a number that is finite, a truth value, or text."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if is_missing(value):
        return None
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, (list, tuple, np.ndarray)):
        value = ", ".join(map(str, value))
    text = str(value).encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates
    return ILLEGAL_CHARACTERS_RE.sub("\N{REPLACEMENT CHARACTER}", text)


_Writer = Callable[[Path, Collection[str], Collection[str]], AbstractContextManager[Append]]
ENDINGS: dict[str, _Writer] = {
    ".parquet": parquet_file,
    ".pq": parquet_file,
    ".sdf": _sdf_file,
    ".xlsx": _excel_file,
}
