"""The folder of a saved model: complete or not there, whoever else saves or loads at the same time."""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from grbb_ext.persistence._document import FORMAT, Document, ModelFileError, parse, sha256

#: Name of the JSON in the folder.
JSON_NAME = "grbb.json"
#: Names that the library's file can have. They never come from the JSON, which could point anywhere.
MODEL_NAMES = ("model.txt", "model.ubj")


def write_folder(
    path: str | PathLike[str], model_name: str, model: bytes, content: Mapping[str, Any], versions: Mapping[str, str]
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
        _move_into_place(folder, target, fresh)
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
    for attempt in range(_ATTEMPTS):
        before = _identity(folder)
        try:
            return _read_folder(folder)
        except (FileNotFoundError, ModelFileError):
            # Another process may be replacing the model: then what was read is half of two, or was gone for a moment.
            if attempt == _ATTEMPTS - 1 or (_identity(folder) == before and not _is_being_saved(folder)):
                raise
            time.sleep(_PAUSE)
    raise AssertionError("unreachable")


# Both together bound the wait for another process.
_ATTEMPTS, _PAUSE = 50, 0.02


def _identity(folder: Path) -> tuple[int, int] | None:
    """Return a number of the folder itself, which another one of the same name does not have."""
    try:
        state = folder.stat()
    except OSError:
        return None
    return state.st_ino, state.st_mtime_ns


def _is_being_saved(folder: Path) -> bool:
    """Return whether a saver works beside the folder."""
    target = Path(os.path.realpath(folder))
    return target.parent.is_dir() and any(target.parent.glob(f".{glob.escape(target.name)}.*"))


def _read_folder(folder: Path) -> tuple[Document, bytes]:
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
    try:
        names = set(os.listdir(target))
        if not names:
            return
        if JSON_NAME in names and names <= {JSON_NAME, *MODEL_NAMES}:
            with suppress(ModelFileError, UnicodeDecodeError):
                if parse((target / JSON_NAME).read_text(encoding="utf-8")).get("format") == FORMAT:
                    return
    except FileNotFoundError:
        return  # nothing is there, or another process is replacing it at this moment
    except NotADirectoryError:
        pass
    raise FileExistsError(
        f"{str(target)!r} exists and is not a saved model, so it is not replaced. Choose another path, or remove it."
    )


def _move_into_place(folder: Path, target: Path, fresh: Path) -> None:
    """Put the folder where the target is, or was; several processes may do so at the same time.

    Where the system can exchange two folders in one step, a reader finds one or the other at any moment.
    """
    for attempt in range(_ATTEMPTS):
        if target.exists() and _exchange(folder, target):
            return
        try:
            os.rename(folder, target)  # nothing is there, or an empty folder
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES) or attempt == _ATTEMPTS - 1:
                raise
        aside = fresh / f"old{attempt}"
        with suppress(FileNotFoundError):  # another process has moved it away
            os.rename(target, aside)
            try:
                os.rename(folder, target)
                return
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES):
                    os.rename(aside, target)
                    raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two folders in one step, where the system can (Linux)."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _write(file: Path, data: bytes) -> None:
    with file.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
