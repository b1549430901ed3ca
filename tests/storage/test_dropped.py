"""Files of models on random Fourier features, which are no more: one error, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import treelens as tl
from treelens.cli.main import app
from treelens.estimators.files import ModelFileError
from treelens.storage.archive import FORMAT_VERSION, read_archive, write_archive

# Written by the last treelens that had such models; they stay.
DROPPED = Path(__file__).parent / "dropped"
TOLD = {
    "streaming-v3.zip": "a StreamingGraphClassifier on random Fourier features, which treelens no "
    "longer has.* Fit StreamingGraphClassifier to the same graphs",
    "random-fourier-svc-v3.zip": "a GraphSVC on random Fourier features, which treelens no longer "
    r"has.* Fit GraphSVC\(approximation='random-binning'\) to the same graphs",
}


@pytest.mark.parametrize("name", TOLD)
def test_the_error_says_what_it_was_and_what_to_do(name: str) -> None:
    with pytest.raises(ModelFileError, match=rf"{name}: this file holds {TOLD[name]}"):
        tl.load(DROPPED / name)


@pytest.mark.parametrize("name", TOLD)
def test_commands_say_so_as_well(name: str) -> None:
    for command in ("info", "patterns"):
        result = CliRunner().invoke(app, [command, str(DROPPED / name)])
        assert result.exit_code != 0
        assert "random Fourier features" in " ".join(result.output.split())


def test_the_name_of_version_2_is_known_too(tmp_path: Path, monkeypatch) -> None:
    from treelens.storage import archive

    contents = read_archive(DROPPED / "random-fourier-svc-v3.zip")
    contents.data["feature_map"]["kind"] = "random-features"
    contents.data["parameters"]["approximation"] = "random-features"
    path = tmp_path / "old.treelens"
    monkeypatch.setattr(archive, "FORMAT_VERSION", 2)
    write_archive(path, contents, "0.0.1")
    monkeypatch.setattr(archive, "FORMAT_VERSION", FORMAT_VERSION)
    assert read_archive(path).version == 2
    with pytest.raises(ModelFileError, match="a GraphSVC on random Fourier features"):
        tl.load(path)
