"""The JSON of a saved model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


class ModelFileError(ValueError):
    """A saved model is damaged, of another format, or something else altogether."""


# Raised when a reader of today would misunderstand what a later writer wrote.
FORMAT_VERSION = 2

FORMAT = "grbb_ext model"


@dataclass(frozen=True)
class Document:
    """What the JSON holds.

    Attributes
    ----------
    content : mapping
        Of plain values (:func:`to_plain`): what the model means.
    versions : mapping of str to str
        Versions of the packages that wrote it.
    model_file : str
        Name of the file beside it, the library's own.
    model_sha256 : str
        Checksum of that file.

    Examples
    --------
    >>> document = Document({"classes": [0, 1]}, {"grbb_ext": "0.1.0"}, "model.txt", sha256(b"tree"))
    >>> Document.read(document.text()) == document
    True
    >>> Document.read(document.text().replace("classes", "glasses"))
    Traceback (most recent call last):
    ...
    grbb_ext.persistence._document.ModelFileError: The JSON was changed after it was written: its checksum differs.
    """

    content: Mapping[str, Any]
    versions: Mapping[str, str]
    model_file: str
    model_sha256: str

    def text(self) -> str:
        """Return the JSON."""
        body = self._body()
        document = {"format": FORMAT, "format_version": FORMAT_VERSION, "sha256": _checksum(body), **body}
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def read(cls, text: str) -> Document:
        """Read the JSON, and refuse one that is damaged, of a later format, or of another program."""
        document = parse(text)
        if document.get("format") != FORMAT:
            raise ModelFileError("The JSON is not that of a model saved by grbb_ext.")
        version = document.get("format_version")
        if type(version) is not int or version < 1:
            raise ModelFileError(f"The JSON has the format version {version!r}; versions are 1, 2, ...")
        if version < FORMAT_VERSION:
            raise ModelFileError(
                f"The model has format version {version}, written by grbb_ext {_writer(document)}; this grbb_ext reads "
                f"version {FORMAT_VERSION}, whose settings have other names. Load it with that version, or load the "
                "booster's own file in the folder with its library."
            )
        if version > FORMAT_VERSION:
            raise ModelFileError(
                f"The model has format version {version}, written by grbb_ext {_writer(document)}; this grbb_ext reads "
                f"version {FORMAT_VERSION}. Upgrade it: pip install -U grbb_ext."
            )
        body: dict[str, Any] = {name: document.get(name) for name in ("versions", "model", "content")}
        if document.get("sha256") != _checksum(body):
            raise ModelFileError("The JSON was changed after it was written: its checksum differs.")
        model, content, versions = body["model"], body["content"], body["versions"]
        if not (
            isinstance(content, dict)
            and isinstance(versions, dict)
            and isinstance(model, dict)
            and model.keys() == {"file", "sha256"}
            and all(isinstance(text, str) for text in (*versions.values(), *model.values()))
        ):
            raise ModelFileError("The JSON lacks what a saved model has.")
        return cls(content, versions, model["file"], model["sha256"])

    def _body(self) -> dict[str, Any]:
        model = {"file": self.model_file, "sha256": self.model_sha256}
        return {"versions": dict(self.versions), "model": model, "content": dict(self.content)}


def sha256(data: bytes) -> str:
    """Return the checksum of a file's bytes."""
    return hashlib.sha256(data).hexdigest()


def _checksum(body: dict[str, Any]) -> str:
    # Of the values, not of the text: another indentation is no damage.
    return sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())


def parse(text: str) -> dict[str, Any]:
    """Return the object that the JSON is."""
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The JSON cannot be read, it may be cut off ({error}).") from error
    if not isinstance(document, dict):
        raise ModelFileError("The JSON is not that of a model saved by grbb_ext.")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no value of JSON")


def _writer(document: dict[str, Any]) -> str:
    versions = document.get("versions")
    return str(versions.get("grbb_ext")) if isinstance(versions, dict) else "of an unknown version"
