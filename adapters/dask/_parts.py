"""Rows cut into partitions: the features, and whatever else belongs to each row, partition by partition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from grbb_ext.adapters.dask._rows import LARGEST_ID, Ids, split_ids
from grbb_ext.labels import read_target
from grbb_ext.table import Schema, Table, Unseen, join_schemas, listed_categories, read_column, read_table

Pieces = Sequence[distributed.Future]


@dataclass(frozen=True)
class Parts:
    """The partitions of X, in the memory of the workers.

    Attributes
    ----------
    client : distributed.Client
        The cluster.
    X : dask Array or DataFrame
        The features, without empty partitions.
    pieces : sequence of Future
        The partitions.
    lengths : list of int
        Their rows, at least one each.
    schema : Schema
        What the columns mean, in all partitions.
    """

    client: distributed.Client
    X: Any
    pieces: Pieces
    lengths: list[int]
    schema: Schema

    @cached_property
    def n_rows(self) -> int:
        """N."""
        return sum(self.lengths)

    @cached_property
    def starts(self) -> list[int]:
        """The position of the first row of each partition."""
        return [0, *np.cumsum(self.lengths).tolist()[:-1]]

    def map(self, function: Callable[..., Any], *pieces: Any, **settings: Any) -> Pieces:
        """Call a function on the workers, for each partition and what belongs to it."""
        return list(self.client.map(function, *pieces, pure=False, **settings))

    def collect(self, function: Callable[..., Any], *pieces: Any, **settings: Any) -> list[Any]:
        """Return what :meth:`map` makes, on the client."""
        return list(self.client.gather(self.map(function, *pieces, **settings)))

    def align(self, values: Any, name: str) -> Pieces:
        """Return values of the rows, given in the order of X, as arrays cut like X.

        Dask reads as many files into a partition as their columns suggest, so that two columns of one frame may come
        in other partitions than twenty. Values are therefore cut again, by position; the index of a Series has to be
        that of X.

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
            host = read_target(values, name)
            if host.shape[0] != self.n_rows:
                raise ValueError(_mismatch(name, f"shape {host.shape}", f"({self.n_rows},)"))
            return list(self.client.scatter(np.split(host, self.starts[1:])))
        if values.ndim != 1:
            raise ValueError(f"{name} must be one-dimensional, one value per row; got shape {values.shape}.")
        _, pieces = _loaded(self.client, values)
        found = self.collect(len, pieces)
        if sum(found) != self.n_rows:
            raise ValueError(_mismatch(name, f"{sum(found)} rows", f"{self.n_rows}"))
        ends = np.cumsum(found)
        cut = []
        for start, length in zip(self.starts, self.lengths, strict=True):
            first = int(np.searchsorted(ends, start, side="right"))
            last = int(np.searchsorted(ends, start + length))
            offset = start - int(ends[first] - found[first])
            cut.append(self.client.submit(_cut, pieces[first : last + 1], offset, length, pure=False))
        if not all(self.collect(_same_index, cut, self.pieces)):
            raise ValueError(
                f"{name} has another index than X, so its rows may be in another order. Take {name} from the same "
                f"frame as X. If the order is the same, pass {name}.to_dask_array()."
            )
        return self.map(read_target, cut, name=name)

    def ids(self, row_ids: Any) -> Pieces:
        """Return the ids of the rows: those given, or the positions of the rows in X."""
        if row_ids is None:
            return self.map(lambda X, start: start + np.arange(X.shape[0], dtype=np.int64), self.pieces, self.starts)
        return self.map(_check_row_ids, self.align(row_ids, "row_ids"))

    def fields(self, blocks: Pieces, *names: str) -> dict[str, Any]:
        """Return arrays of tuples, by name, as dask Series with the partitions of X, as a DaskDMatrix wants them."""
        fields = {}
        for number, name in enumerate(names):
            # Each is made where its rows are: else XGBoost, which packs both together, might move the rows.
            made = self.map(_series, blocks, self.pieces, number=number)
            fields[name] = dd.from_delayed([dask.delayed(piece) for piece in made], meta=_series((np.empty(0),)))
        return fields

    def id_fields(self, ids: Pieces) -> dict[str, Any]:
        """Return the two fields of a DaskDMatrix that carry the ids."""
        return self.fields(self.map(split_ids, ids), "label_lower_bound", "label_upper_bound")


def read_parts(client: distributed.Client, X: Any, missing: float | None = None) -> Parts:
    """Load X onto the workers, count the rows of its partitions, and give them the same categories.

    NaN takes the place of the number `missing`, since the teacher reads the rows too.
    """
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
    missing = np.nan if missing is None else float(missing)
    if not np.isnan(missing):
        X = _mapped(X, _without, missing)
    X, pieces = _loaded(client, X)
    lengths = client.gather(client.map(lambda piece: piece.shape[0], pieces, pure=False))
    kept = [number for number, length in enumerate(lengths) if length]
    if not kept:
        raise ValueError("X has no rows.")
    if len(kept) < len(lengths):
        # XGBoost 3.2 refuses some empty arrays that have travelled between workers ("Input pointer misalignment").
        X = client.persist(X.blocks[kept] if isinstance(X, da.Array) else X.partitions[kept])
        pieces, lengths = [pieces[i] for i in kept], [lengths[i] for i in kept]
    schemas, objects = zip(*client.gather(client.map(_schema, pieces, pure=False)), strict=True)
    schema = replace(join_schemas(schemas), missing=missing)
    if any(objects) or any(one.categories != schema.categories for one in schemas):
        pieces = client.map(_recoded, pieces, categories=_named(X, schema), unseen="missing", pure=False)
        X = _joined(pieces, X._meta)
    return Parts(client, X, pieces, lengths, schema)


def _loaded(client: distributed.Client, collection: Any) -> tuple[Any, Pieces]:
    """Load a collection onto the workers; return it and its partitions, in order.

    What ``persist`` returns for columns of ``read_parquet`` reports other partitions than it has (dask issue 12488).
    """
    if isinstance(collection, da.Array):
        collection = client.persist(collection)
        return collection, list(client.futures_of(collection))
    pieces = list(client.compute(list(collection.to_delayed())))
    return _joined(pieces, collection._meta), pieces


def _joined(pieces: Pieces, meta: Any) -> Any:
    return dd.from_delayed([dask.delayed(piece) for piece in pieces], meta=meta, verify_meta=False)


def _mapped(X: Any, function: Callable[..., Any], *settings: Any) -> Any:
    """Return a dask Array or DataFrame, changed partition by partition."""
    if isinstance(X, da.Array):
        return X.map_blocks(function, *settings, dtype=np.result_type(X.dtype, np.float32))
    return X.map_partitions(function, *settings, meta=function(X._meta, *settings))


def _without(piece: Any, missing: float) -> Any:
    """Return a partition with NaN in place of a number."""
    if sp.issparse(piece):
        piece = piece.astype(np.result_type(piece.dtype, np.float32))
        piece.data[piece.data == missing] = np.nan
        return piece
    if not hasattr(piece, "iloc"):
        return np.where(piece == missing, np.nan, piece)
    numbers, changed = piece.select_dtypes("number"), piece.copy(deep=False)
    changed[numbers.columns] = numbers.mask(numbers == missing)
    return changed


def with_categories(X: Any, schema: Schema, unseen: Unseen = "missing") -> Any:
    """Give the categorical columns of all partitions the same categories: boosters take codes, not names.

    Parameters
    ----------
    X : dask Array or DataFrame
        Rows; an Array has no categories. Columns in another order are refused, which LightGBM would not notice.
    schema : Schema
        The categories.
    unseen : {"missing", "error"}, default="missing"
        What becomes of other categories.
    """
    if not isinstance(X, dd.DataFrame):
        return X
    read_table(X._meta, schema=schema, min_rows=0)
    return _mapped(X, _recoded, _named(X, schema), unseen)


def _named(X: dd.DataFrame, schema: Schema) -> dict[Any, list[Any]]:
    return {X.columns[j]: list(names) for j, names in schema.categories.items()}


def _recoded(frame: pd.DataFrame, categories: Mapping[Any, list[Any]], unseen: Unseen) -> pd.DataFrame:
    changed = frame.copy(deep=False)  # DataFrame.assign takes names alone that are text
    for name, names in categories.items():
        codes = read_column(frame[name], f"Column {name!r} of X", tuple(names), unseen)
        changed[name] = pd.Categorical.from_codes(np.nan_to_num(codes, nan=-1.0).astype(np.intp), names)
    for name in _objects(changed):
        changed[name] = read_column(frame[name], f"Column {name!r} of X")
    return changed


def _objects(frame: Any) -> list[Any]:
    """Return the columns of Python objects: numbers of `decimal`, or the Nones of a file that has no value of one."""
    return [
        name
        for name, kind in frame.dtypes.items()
        if kind.kind not in "biuf" and not isinstance(kind, pd.CategoricalDtype)
    ]


def rows_of(piece: Any, rows: Any) -> Any:
    """Return some rows of a partition, by position."""
    return piece.iloc[rows] if hasattr(piece, "iloc") else piece[rows]


def stacked(pieces: Sequence[Any]) -> Any:
    """Return rows of several partitions below each other."""
    if hasattr(pieces[0], "iloc"):
        return pd.concat(pieces)
    return sp.vstack(pieces, format="csr") if sp.issparse(pieces[0]) else np.concatenate(pieces)


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
    return read_table(piece if rows is None else rows_of(piece, rows), schema=schema, min_rows=0)


def _schema(piece: Any) -> tuple[Schema, bool]:
    """Return what the columns of a partition mean, and whether some hold Python objects, which boosters do not take."""
    schema, listed = read_table(piece).schema, listed_categories(piece)
    for j in schema.categorical:
        if j not in listed:
            column = repr(schema.names[j]) if schema.names else j
            raise ValueError(
                f"Column {column} of X holds text, which XGBoost does not take from a dask DataFrame. Make it "
                "categorical: X.categorize()."
            )
    # A partition need not hold every category of its type.
    found = Schema(schema.categorical, listed, schema.names, schema.n_columns)
    return found, hasattr(piece, "iloc") and bool(_objects(piece))


def _cut(pieces: list[Any], offset: int, length: int) -> Any:
    """Return the values of the rows of a partition of X from the partitions that hold them."""
    return rows_of(stacked(pieces), slice(offset, offset + length))


def _same_index(values: Any, rows: Any) -> bool:
    return not (hasattr(values, "index") and hasattr(rows, "index")) or bool(values.index.equals(rows.index))


def _check_row_ids(ids: NDArray[Any]) -> Ids:
    whole = ids.dtype.kind in "iu" or (ids.dtype.kind == "f" and np.isfinite(ids).all() and (ids % 1 == 0).all())
    if not whole:
        raise ValueError("row_ids must be whole numbers, the row of the graph that each row of X is.")
    numbers = ids.astype(np.int64)
    if numbers.size and (numbers.min() < 0 or numbers.max() > LARGEST_ID):
        raise ValueError(f"row_ids must lie between 0 and 2^44 - 1, got {numbers.min()}..{numbers.max()}.")
    return numbers


def _series(block: tuple[NDArray[Any], ...], piece: Any = None, number: int = 0) -> Any:
    return pd.Series(block[number].astype(np.float32))


def _mismatch(name: str, found: str, wanted: str) -> str:
    return (
        f"{name} must have a value for each row of X, in the same order: it has {found}, X has {wanted}. Take {name} "
        "from the same frame, or pass a dask array or a plain array."
    )
