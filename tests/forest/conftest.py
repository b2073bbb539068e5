from __future__ import annotations

import pytest

from grbb_ext.forest import _compiled


@pytest.fixture(params=["numpy", "numba"])
def walker(request, monkeypatch):
    """Run a test with both implementations of the walk."""
    assert _compiled.is_available()
    if request.param == "numpy":
        monkeypatch.setattr(_compiled, "is_available", lambda: False)
    return request.param
