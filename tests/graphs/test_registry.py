"""The data sets that are known by name, and what their files must hash to."""

from __future__ import annotations

import re

import pytest

from treelens.graphs.errors import GraphDataError
from treelens.graphs.registry import DATASETS, dataset_info
from treelens.graphs.sources import OPTIONAL_PARTS, REQUIRED_PARTS


@pytest.mark.parametrize("name", DATASETS)
def test_files_that_are_pinned_are_files_of_the_set(name: str) -> None:
    info = dataset_info(name)
    assert info.name == name
    parts = REQUIRED_PARTS + OPTIONAL_PARTS
    possible = {f"{info.file_stem}_{part}.txt" for part in parts} | {f"{info.file_stem}.csv"}
    assert set(info.sha256) <= possible
    assert all(re.fullmatch("[0-9a-f]{64}", digest) for digest in info.sha256.values())
    assert (info.kind == "tu") == (info.n_edges is not None)
    assert info.kind == "tu" or not info.downloadable


def test_no_two_files_have_the_same_hash() -> None:
    digests = [digest for info in DATASETS.values() for digest in info.sha256.values()]
    assert len(set(digests)) == len(digests)


def test_the_registry_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        DATASETS["MINE"] = DATASETS["MUTAG"]
    with pytest.raises(TypeError):
        DATASETS["MUTAG"].sha256["MUTAG_A.txt"] = ""


@pytest.mark.parametrize(
    ("name", "hint"),
    [("mutag", "Did you mean 'MUTAG'"), ("PROTEIN", "Did you mean 'PROTEINS'"), ("zzz", "Known")],
)
def test_a_name_that_is_not_known(name: str, hint: str) -> None:
    with pytest.raises(GraphDataError, match=f"no data set named '{name}'") as caught:
        dataset_info(name)
    assert hint in str(caught.value)
    assert ("Did you mean" in str(caught.value)) == (name != "zzz")
