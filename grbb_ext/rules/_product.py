"""The product of the dense operator with a few vectors, once a round."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# OpenBLAS keeps a product on the calling thread while the matrix has fewer than 9,216 entries.
_ENTRIES_PER_BLOCK = 8192


def propagate(P_bar: NDArray[np.float32], vectors: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
    """Return P_bar @ vectors, in float32, without waking the threads of BLAS.

    The product is bound by reading P_bar, which one thread does about as fast as two. But the threads of BLAS go on
    waiting actively next to those of the booster: on two cores a round of either booster took up to twice as long.
    So the rows go to BLAS in blocks too small for threads, in one call. All blocks have the same height, a multiple of
    8 where that is possible, and the last is filled up: BLAS treats the odd rows at the end of a matrix differently,
    and so the product of a row with up to six vectors has the same bits whichever rows are next to it, on one machine
    or on many. (With nine or more OpenBLAS takes another way, and the last bit depends on the place.)

    Parameters
    ----------
    P_bar : ndarray of float32 of shape (N, n), row-major
        The operator.
    vectors : ndarray of shape (n,) or (n, k)
        What to extend.

    Returns
    -------
    ndarray of float32 of shape (N,) or (N, k)
        The product.

    Examples
    --------
    >>> propagate(np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], dtype=np.float32), np.array([2.0, 4.0])).tolist()
    [2.0, 3.0, 4.0]
    """
    right = vectors.astype(np.float32)
    n_rows, n = P_bar.shape
    height = max(1, _ENTRIES_PER_BLOCK // n)
    height -= height % (8 if height >= 8 else 4) if height >= 4 else 0
    whole = n_rows - n_rows % height
    product = np.empty((n_rows, *right.shape[1:]), dtype=np.float32)
    blocks = product[:whole].reshape(-1, height, *right.shape[1:])
    np.matmul(P_bar[:whole].reshape(-1, height, n), right, out=blocks)
    if whole < n_rows:
        last = np.zeros((height, n), dtype=np.float32)
        last[: n_rows - whole] = P_bar[whole:]
        product[whole:] = (last @ right)[: n_rows - whole]
    return product
