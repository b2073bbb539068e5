"""The error of files that are not what they should be."""

from __future__ import annotations


class ModelFileError(ValueError):
    """A saved model is damaged, of another format, or something else altogether."""
