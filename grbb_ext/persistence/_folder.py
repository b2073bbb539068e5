"""A saved model on disk: one folder, written as a whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from grbb_ext.persistence._document import Document, sha256
from grbb_ext.persistence._error import ModelFileError

JSON_NAME = "grbb.json"
# Names never come from the JSON, which could point anywhere.
MODEL_NAMES = ("model.txt", "model.ubj")


def write_folder(
    path: str | PathLike[str],
    model_name: str,
    model: bytes,
    content: Mapping[str, Any],
    versions: Mapping[str, str],
) -> None:
    """Write a model.

    The folder is written under another name and moved to its place when it is complete. A model that was there before
    is replaced; anything else is refused.

    Parameters
    ----------
    path : path-like
        The folder.
    model_name : {"model.txt", "model.ubj"}
        Name of the library's file in it.
    model : bytes
        What that file holds.
    content, versions : mapping
        Of the JSON, see :class:`Document`.

    Raises
    ------
    FileExistsError
        If something stands there that is not a saved model.
    """
    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        folder = fresh / "new"
        folder.mkdir()  # with the permissions of any new folder; that of mkdtemp is private
        text = Document(content, versions, model_name, sha256(model)).text()
        _write(folder / model_name, model)
        _write(folder / JSON_NAME, text.encode())
        _move_into_place(folder, target, fresh / "old")
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def read_folder(path: str | PathLike[str]) -> tuple[Document, bytes]:
    """Read the JSON of a saved model and check the library's file against it.

    Returns
    -------
    document : Document
        What the JSON says.
    model : bytes
        What the library's file holds; the bytes are those that were written.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    ModelFileError
        If there is something else, or it is damaged.
    """
    folder = Path(path)
    if not folder.exists():
        raise FileNotFoundError(f"There is no saved model at {str(folder)!r}.")
    if not folder.is_dir():
        raise ModelFileError(
            f"{str(folder)!r} is a file, but a saved model is a folder with {JSON_NAME} and the booster's file. Pass "
            "the folder; a booster's file alone is loaded by its own library."
        )
    if not (folder / JSON_NAME).is_file():
        raise ModelFileError(f"The folder {str(folder)!r} has no {JSON_NAME}, so it is not a saved model.")
    try:
        document = Document.read((folder / JSON_NAME).read_text(encoding="utf-8"))
    except (ModelFileError, UnicodeDecodeError) as error:
        raise ModelFileError(f"{str(folder / JSON_NAME)!r} is refused. {error}") from error
    if document.model_file not in MODEL_NAMES:
        raise ModelFileError(f"{str(folder / JSON_NAME)!r} names the unknown model file {document.model_file!r}.")
    file = folder / document.model_file
    if not file.is_file():
        raise ModelFileError(f"The booster's file {document.model_file} is missing from {str(folder)!r}.")
    model = file.read_bytes()
    if sha256(model) != document.model_sha256:
        raise ModelFileError(
            f"{str(file)!r} is not the file that was saved: its checksum differs, so it is damaged, cut off or "
            "exchanged. Copy the folder again, or save the model again."
        )
    return document, model


def _check_replaceable(target: Path) -> None:
    """Refuse to replace what is not a saved model, or an empty folder."""
    if not target.exists():
        return
    if target.is_dir():
        names = {entry.name for entry in target.iterdir()}
        if not names:
            return
        if names <= {JSON_NAME, *MODEL_NAMES}:
            with suppress(ModelFileError, FileNotFoundError, UnicodeDecodeError):
                Document.read((target / JSON_NAME).read_text(encoding="utf-8"))
                return
    raise FileExistsError(
        f"{str(target)!r} exists and is not a saved model, so it is not replaced. Choose another path, or remove it."
    )


def _move_into_place(folder: Path, target: Path, aside: Path) -> None:
    if not target.exists():
        os.rename(folder, target)
        return
    os.rename(target, aside)
    try:
        os.rename(folder, target)
    except OSError:
        os.rename(aside, target)
        raise


def _write(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
