"""Saved models: a folder with the library's own model file and a JSON that says what it means. Nothing is executed."""

from grbb_ext.persistence._document import (
    FORMAT_VERSION,
    Document,
    ModelFileError,
    NotPlainError,
    from_plain,
    sha256,
    to_plain,
    versions_of,
)
from grbb_ext.persistence._folder import read_folder, write_folder

__all__ = [
    "FORMAT_VERSION",
    "Document",
    "ModelFileError",
    "NotPlainError",
    "from_plain",
    "read_folder",
    "sha256",
    "to_plain",
    "versions_of",
    "write_folder",
]
