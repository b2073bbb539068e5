"""Files of real models, written by many versions of both libraries (make_zoo.py): bit-equal, or refused by name."""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from grbb_ext import Forest

ZOO = sorted((Path(__file__).parent / "zoo").glob("*.zip"))
REFUSED = {
    "linear.json": "booster='gblinear' has no trees",
    "linear.txt": "linear_tree=true",
    "binary-format.deprecated": "no saved model that can be read",
    "cox-astray.json": r"a leaf that is not a finite number.*survival:cox",
}


@cache
def contents(path):
    """Return the files of an archive by name, and its scores."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    scores = dict(np.load(io.BytesIO(files.pop("scores.npz"))))
    return files, scores


def models():
    for path in ZOO:
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name != "scores.npz"]
        yield from (pytest.param(path, name, id=f"{path.stem}-{name}") for name in names)


def test_the_zoo_is_there():
    lines = {path.stem.rsplit(".", 1)[0] for path in ZOO}
    xgboost = {f"xgboost-{line}" for line in ("1.7", "2.0", "2.1", "3.0", "3.2", "3.3", "3.4")}
    lightgbm = {f"lightgbm-{line}" for line in ("2.0", "2.2", "2.3", "3.3", "4.0", "4.6", "4.7")}
    assert xgboost | lightgbm <= lines
    assert sum(path.stat().st_size for path in ZOO) < 5e6


@pytest.mark.parametrize(("path", "name"), models())
def test_a_model_of_the_zoo(path, name):
    files, scores = contents(path)
    rows, expected = scores[str(scores[f"rows of {name}"])], scores[name]
    if name in REFUSED and not (name == "cox-astray.json" and np.isfinite(expected).all()):
        with pytest.raises(ValueError, match=REFUSED[name]):
            Forest.from_bytes(files[name])
        return
    forest = Forest.from_bytes(files[name])
    got = forest.predict(rows)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
