"""Saved models: a folder with the library's own model file and a JSON that says what it means. Nothing is executed."""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import json
import math
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

from grbb_ext._options import Spec
from grbb_ext.costs import FeatureCosts

_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# Truth values, numbers and text: no objects, and nothing that has to be looked up by name.
_DTYPE = re.compile(r"[<>|=](?:b1|[iu][1248]|f[248]|U\d{1,6})")


# Bytes that an array of text may take whatever it holds: its type can be wider than its longest entry.
_SMALL = 2**16


class NotPlainError(TypeError):
    """A value that has no form in JSON, such as a function."""


def to_plain(value: Any) -> Any:
    """Return a value as what JSON has, so that :func:`from_plain` gives it back with its type.

    Parameters
    ----------
    value : None, bool, int, float, str, list, tuple, dict, array of numbers or text, FeatureCosts, or Spec
        The value. Scalars of numpy become those of Python.

    Raises
    ------
    NotPlainError
        If it is, or holds, something else.

    Examples
    --------
    >>> to_plain((1, None)), to_plain(float("nan")), to_plain({2: "b"})
    ({'tuple': [1, None]}, {'float': 'nan'}, {'dict': [[2, 'b']]})
    >>> to_plain(np.array(["ham", "spam"]))
    {'array': ['ham', 'spam'], 'dtype': '<U4', 'shape': [2]}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str)):
        # str() of an Enum is the name of its member, not its text.
        return value if value is None or isinstance(value, bool) else str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if type(value) is list:
        return [to_plain(entry) for entry in value]
    if type(value) is tuple:
        return {"tuple": [to_plain(entry) for entry in value]}
    if isinstance(value, dict):
        return {"dict": [[to_plain(key), to_plain(entry)] for key, entry in value.items()]}
    if isinstance(value, FeatureCosts):
        return {"costs": value.to_dict()}
    if Spec.registry.get(type(value).__name__) is type(value):
        names = [field.name for field in fields(value) if field.init]  # type: ignore[arg-type]  # they are dataclasses
        options = {name: to_plain(getattr(value, name)) for name in names}
        return {"spec": type(value).__name__, "fields": options}
    if isinstance(value, np.ndarray) and _DTYPE.fullmatch(value.dtype.str):
        flat = [to_plain(entry) for entry in value.ravel().tolist()]
        return {"array": flat, "dtype": value.dtype.str, "shape": list(value.shape)}
    raise NotPlainError(f"a value of type {type(value).__name__} has no form in JSON")


def from_plain(plain: Any) -> Any:
    """Undo :func:`to_plain`.

    Examples
    --------
    >>> from_plain(to_plain({"costs": (1.5, float("-inf"))}))
    {'costs': (1.5, -inf)}
    >>> from_plain(to_plain(np.array([3, 8], dtype=np.int8))).dtype
    dtype('int8')
    """
    if isinstance(plain, list):
        return [from_plain(entry) for entry in plain]
    if not isinstance(plain, dict):
        return plain
    if plain.keys() == {"array", "dtype", "shape"}:
        return _array(**plain)
    if plain.keys() == {"spec", "fields"}:
        return _spec(**plain)
    [(kind, content)] = plain.items()
    if kind == "float" and isinstance(content, str):
        return _NOT_FINITE[content]
    if kind == "tuple" and isinstance(content, list):
        return tuple(from_plain(entry) for entry in content)
    if kind == "dict" and isinstance(content, list):
        return dict(_entry(*pair) for pair in content)
    if kind == "costs" and isinstance(content, dict):
        return FeatureCosts.from_dict(content)
    raise ValueError(f"a value of the unknown kind {kind!r}")


def _entry(key: Any, value: Any) -> tuple[Any, Any]:
    key = from_plain(key)
    if not isinstance(key, (bool, int, float, str, tuple)):
        raise ValueError(f"a key of type {type(key).__name__}")
    return key, from_plain(value)


def _spec(spec: Any, fields: Any) -> Spec:
    """Make the option of that name; nothing else is found by name."""
    made = Spec.registry.get(spec) if isinstance(spec, str) else None
    if made is None or not isinstance(fields, dict):
        raise ValueError(f"an option of the unknown kind {spec!r}")
    return made(**{name: from_plain(value) for name, value in fields.items()})


def _array(array: Any, dtype: Any, shape: Any) -> NDArray[Any]:
    """Make an array of what the file holds; widths and shapes that it only announces are refused."""
    if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
        raise ValueError(f"an array of the type {dtype!r}")
    if not isinstance(array, list) or not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"an array of the shape {shape!r}")
    kind = np.dtype(dtype)
    types: dict[str, tuple[type, ...]] = {"b": (bool,), "i": (int,), "u": (int,), "f": (int, float), "U": (str,)}
    wanted = types[kind.kind]
    values = [from_plain(entry) for entry in array]
    if not all(isinstance(value, wanted) and (kind.kind == "b" or type(value) is not bool) for value in values):
        raise ValueError(f"an array of the type {dtype!r} with entries of another one")
    if kind.kind == "U" and kind.itemsize * len(values) > _SMALL + 64 * sum(map(len, values)):
        raise ValueError(f"an array of the type {dtype!r} for shorter text")
    return np.array(values, dtype=kind).reshape(shape)


def versions_of(library: str, version: str) -> dict[str, str]:
    """Return the versions that a model was trained with: of grbb_ext, the booster's library, and what they stand on."""
    import grbb_ext  # which imports this module before it knows its version

    return {
        "grbb_ext": grbb_ext.__version__,
        library: version,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
    }


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
    grbb_ext.persistence.ModelFileError: The JSON was changed after it was written: its checksum differs.
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
        version = document.get("format_version")
        if type(version) is not int or version < 1:
            raise ModelFileError(f"The JSON has the format version {version!r}; versions are 1, 2, ...")
        if version != FORMAT_VERSION:
            advice = "Upgrade it: pip install -U grbb_ext."
            if version < FORMAT_VERSION:
                advice = (
                    "Its settings have other names: load it with that version, or load the booster's own file in the "
                    "folder with its library."
                )
            raise ModelFileError(
                f"The model has format version {version}, written by grbb_ext {_writer(document)}; this grbb_ext reads "
                f"version {FORMAT_VERSION}. {advice}"
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
    """Return the object that the JSON of a saved model is, of whatever version."""
    try:
        document = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"The JSON cannot be read, it may be cut off ({error}).") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError("The JSON is not that of a model saved by grbb_ext.")
    return document


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no value of JSON")


def _writer(document: dict[str, Any]) -> str:
    versions = document.get("versions")
    return str(versions.get("grbb_ext")) if isinstance(versions, dict) else "of an unknown version"


#: Name of the JSON in the folder.
JSON_NAME = "grbb.json"
#: The library of each file that may stand beside it. Names never come from the JSON, which could point anywhere.
LIBRARY_OF_FILE = {"model.txt": "lightgbm", "model.ubj": "xgboost"}


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
    for _ in range(_ATTEMPTS - 1):
        before = _identity(folder)
        try:
            return _read_folder(folder)
        except (FileNotFoundError, ModelFileError):
            # Another process may be replacing the model: then what was read is half of two, or was gone for a moment.
            if _identity(folder) == before and not _is_being_saved(folder):
                raise
            time.sleep(_PAUSE)
    return _read_folder(folder)


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
    if document.model_file not in LIBRARY_OF_FILE:
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
        if JSON_NAME in names and names <= {JSON_NAME, *LIBRARY_OF_FILE}:
            with suppress(ModelFileError, UnicodeDecodeError):
                parse((target / JSON_NAME).read_text(encoding="utf-8"))
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
    aside: Path | None = None
    for attempt in range(_ATTEMPTS):
        if target.exists() and _exchange(folder, target):
            return
        try:
            os.rename(folder, target)  # nothing is there, or an empty folder
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES) or attempt == _ATTEMPTS - 1:
                if aside is not None:
                    with suppress(OSError):  # another model is there by now
                        os.rename(aside, target)
                raise
        aside = fresh / f"old{attempt}"
        with suppress(FileNotFoundError):  # another process has moved it away
            os.rename(target, aside)


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
