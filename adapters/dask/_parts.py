"""Rows cut into partitions: the features, and whatever else belongs to each row, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from grbb_ext.adapters.dask._rows import LARGEST_ID, Ids, split_ids
from grbb_ext.labels import check_sample_weight
from grbb_ext.table import Schema, Table, join_schemas, listed_categories, read_table

Pieces = Sequence[distributed.Future]


@dataclass(frozen=True)
class Parts:
    """The partitions of X, in the memory of the workers.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    X : dask Array or DataFrame
        The features, persisted.
    pieces : sequence of Future
        The partitions.
    given : list of int
        Rows of the partitions that were given. Empty ones are not among `X` and `pieces`.
    schema : Schema
        What the columns mean, in all partitions.
    """

    client: distributed.Client
    X: Any
    pieces: Pieces
    given: list[int]
    schema: Schema

    @property
    def n_rows(self) -> int:
        """N."""
        return sum(self.given)

    @cached_property
    def lengths(self) -> list[int]:
        """Rows of the partitions, at least one each."""
        return [n for n in self.given if n]

    @cached_property
    def starts(self) -> list[int]:
        """The position of the first row of each partition."""
        return [0, *np.cumsum(self.lengths).tolist()[:-1]]

    def align(self, values: Any, name: str) -> Pieces:
        """Return values of the rows, given in the order of X, as arrays cut like X.

        Parameters
        ----------
        values : dask Array, dask Series or array-like of shape (N,)
            One value for each row.
        name : str
            For messages.
        """
        if isinstance(values, dd.DataFrame):
            raise ValueError(f"{name} must be one column: pass a Series, such as frame[{name!r}].")
        if not isinstance(values, dd.Series | da.Array):
            host = np.asarray(values)
            if host.ndim != 1 or host.shape[0] != self.n_rows:
                raise ValueError(_mismatch(name, f"shape {host.shape}", f"({self.n_rows},)"))
            return list(self.client.scatter(np.split(host, self.starts[1:])))
        if values.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, one value per row; got shape {values.shape}.")
        n_given = len(self.given)
        if isinstance(values, dd.Series) and values.npartitions != n_given:
            raise ValueError(_mismatch(name, f"{values.npartitions} partitions", f"{n_given}"))
        if isinstance(values, da.Array) and not (np.isnan(values.shape[0]) and values.npartitions == n_given):
            if np.isnan(values.shape[0]):
                values = values.persist()
                values.compute_chunk_sizes()
            if values.shape[0] != self.n_rows:
                raise ValueError(_mismatch(name, f"{values.shape[0]} rows", f"{self.n_rows}"))
            values = values.rechunk((tuple(self.lengths),))
        pieces = self.client.futures_of(self.client.persist(values))
        if len(pieces) == n_given:
            pieces = [piece for piece, n in zip(pieces, self.given, strict=True) if n]
        arrays = self.client.map(_values, pieces, pure=False)
        found = self.client.gather(self.client.map(len, arrays, pure=False))
        if found != self.lengths:
            raise ValueError(_mismatch(name, f"partitions of {found[:9]} rows", f"{self.lengths[:9]}"))
        return list(arrays)

    def ids(self, row_ids: Any) -> Pieces:
        """Return the ids of the rows: those given, or the positions of the rows in X."""
        if row_ids is None:
            return list(self.client.map(_positions, self.pieces, self.starts, pure=False))
        return list(self.client.map(_check_row_ids, self.align(row_ids, "row_ids"), pure=False))

    def weights(self, sample_weight: Any) -> Pieces | None:
        """Return the weights of the rows, or None."""
        if sample_weight is None:
            return None
        weights = self.align(sample_weight, "sample_weight")
        return list(self.client.map(lambda weight: check_sample_weight(weight, weight.size), weights, pure=False))

    def series(self, pieces: Pieces, convert: Callable[..., Any] = np.asarray, **settings: Any) -> dd.Series:
        """Return pieces, converted, as a dask Series with the partitions of X, as a DaskDMatrix wants them."""
        # Each is made where its rows are: else XGBoost, which packs both together, might move the rows.
        made = self.client.map(_series, pieces, self.pieces, convert=convert, pure=False, **settings)
        return dd.from_delayed([dask.delayed(piece) for piece in made], meta=_series(np.empty(0)))

    def id_fields(self, ids: Pieces) -> dict[str, dd.Series]:
        """Return the two fields of a DaskDMatrix that carry the ids."""
        return {
            "label_lower_bound": self.series(ids, lambda ids: split_ids(ids)[0]),
            "label_upper_bound": self.series(ids, lambda ids: split_ids(ids)[1]),
        }


def read_parts(client: distributed.Client, X: Any) -> Parts:
    """Persist X on the workers and count the rows of its partitions."""
    if isinstance(X, da.Array):
        if X.ndim != 2:
            raise ValueError(f"X must be two-dimensional (rows x columns), got shape {X.shape}.")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
    elif not isinstance(X, dd.DataFrame):
        raise TypeError(
            f"X must be a dask Array or DataFrame, got {type(X).__name__}. Use dask.array.from_array(X, chunks=...), "
            "or train on one machine with grbb_objective and xgboost.train."
        )
    X = client.persist(X)
    pieces = client.futures_of(X)
    given = client.gather(client.map(lambda piece: piece.shape[0], pieces, pure=False))
    kept = [number for number, length in enumerate(given) if length]
    if not kept:
        raise ValueError("X has no rows.")
    if len(kept) < len(given):
        # XGBoost 3.2 refuses some empty arrays that have travelled between workers ("Input pointer misalignment").
        X = client.persist(X.blocks[kept] if isinstance(X, da.Array) else X.partitions[kept])
    pieces = [pieces[i] for i in kept]
    schema = join_schemas(client.gather(client.map(_schema, pieces, pure=False)))
    return Parts(client, X, pieces, given, schema)


def part_table(piece: Any, schema: Schema, rows: Any = None) -> Table:
    """Return a partition, or some of its rows, as a table.

    Parameters
    ----------
    piece : ndarray or pandas.DataFrame
        The partition.
    schema : Schema
        Of all partitions, :attr:`Parts.schema`.
    rows : ndarray of int or None, default=None
        Some rows, by position.

    Returns
    -------
    Table
    """
    if rows is not None:
        piece = piece.iloc[rows] if hasattr(piece, "iloc") else piece[rows]
    return read_table(piece, schema=schema, min_rows=0)


def _schema(piece: Any) -> Schema:
    schema, listed = read_table(piece).schema, listed_categories(piece)
    for j in schema.categorical:
        if j not in listed:
            column = repr(schema.names[j]) if schema.names else j
            raise ValueError(
                f"Column {column} of X holds text, which XGBoost does not take from a dask DataFrame. Make it "
                "categorical: X.categorize()."
            )
    return schema


def _values(piece: Any) -> NDArray[Any]:
    """Return a partition of one column as an array of numpy's own types, None or NaN where there is no value."""
    if isinstance(piece.dtype, np.dtype):
        return np.asarray(piece)
    if piece.dtype.kind in "iub" and not piece.isna().any():
        return np.asarray(piece.to_numpy(dtype=np.int64))
    if piece.dtype.kind in "iufb":
        return np.asarray(piece.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(piece.to_numpy(dtype=object, na_value=None))


def _positions(piece: Any, start: int) -> Ids:
    return np.arange(start, start + piece.shape[0], dtype=np.int64)


def _check_row_ids(ids: NDArray[Any]) -> Ids:
    whole = ids.dtype.kind in "iu" or (ids.dtype.kind == "f" and np.isfinite(ids).all() and (ids % 1 == 0).all())
    if not whole:
        raise ValueError("row_ids must be whole numbers, the row of the graph that each row of X is.")
    numbers = ids.astype(np.int64)
    if numbers.size and (numbers.min() < 0 or numbers.max() > LARGEST_ID):
        raise ValueError(f"row_ids must lie between 0 and 2^44 - 1, got {numbers.min()}..{numbers.max()}.")
    return numbers


def _series(values: NDArray[Any], piece: Any = None, convert: Callable[..., Any] = np.asarray, **settings: Any) -> Any:
    return pd.Series(convert(values, **settings).astype(np.float32))


def _mismatch(name: str, found: str, wanted: str) -> str:
    return (
        f"{name} must follow the rows of X: it has {found}, X has {wanted}. Cut both alike, e.g. take {name} from the "
        "same frame, or pass a dask array with known chunks or a plain array."
    )
