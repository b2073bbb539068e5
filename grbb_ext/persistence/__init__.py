"""Saved models: a folder with the library's own model file and a JSON that says what it means. Nothing is executed."""

from grbb_ext.persistence._document import FORMAT_VERSION, Document, ModelFileError, sha256
from grbb_ext.persistence._folder import JSON_NAME, MODEL_NAMES, read_folder, write_folder
from grbb_ext.persistence._values import NotPlainError, from_plain, to_plain

__all__ = [
    "FORMAT_VERSION",
    "JSON_NAME",
    "MODEL_NAMES",
    "Document",
    "ModelFileError",
    "NotPlainError",
    "from_plain",
    "read_folder",
    "sha256",
    "to_plain",
    "write_folder",
]
