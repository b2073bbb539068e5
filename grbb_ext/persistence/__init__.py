"""Saved models: a folder with the library's own model file and a JSON that says what it means. Nothing is executed."""

from grbb_ext.persistence._document import FORMAT_VERSION, Document
from grbb_ext.persistence._error import ModelFileError
from grbb_ext.persistence._folder import read_folder, write_folder
from grbb_ext.persistence._values import NotPlainError, from_plain, to_plain

__all__ = [
    "FORMAT_VERSION",
    "Document",
    "ModelFileError",
    "NotPlainError",
    "from_plain",
    "read_folder",
    "to_plain",
    "write_folder",
]
