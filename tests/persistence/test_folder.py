from __future__ import annotations

import json
import os
import threading

import pytest

from grbb_ext import persistence as _folder
from grbb_ext.persistence import FORMAT_VERSION, Document, ModelFileError, _checksum, read_folder, write_folder

CONTENT = {"task": "classification", "classes": [0, 1]}
VERSIONS = {"grbb_ext": "0.1.0"}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "model"
    write_folder(path, "model.txt", b"tree\nend of trees\n", CONTENT, VERSIONS)
    return path


def rewrite(path, **changes):
    """Change the JSON without its checksum."""
    document = json.loads((path / "grbb.json").read_text(encoding="utf-8"))
    (path / "grbb.json").write_text(json.dumps(document | changes), encoding="utf-8")


def test_what_is_written_is_read(saved):
    document, model = read_folder(saved)
    assert (document.content, document.versions, model) == (CONTENT, VERSIONS, b"tree\nend of trees\n")
    assert sorted(os.listdir(saved)) == ["grbb.json", "model.txt"]
    assert os.listdir(saved.parent) == ["model"], "a temporary folder was left behind"


def test_another_layout_of_the_same_json_is_no_damage(saved):
    rewrite(saved)
    assert read_folder(saved)[0].content == CONTENT


def test_folders_on_the_way_are_made(tmp_path):
    write_folder(tmp_path / "a/b/model", "model.ubj", b"{L", CONTENT, VERSIONS)
    assert read_folder(tmp_path / "a/b/model")[1] == b"{L"


def test_a_saved_model_is_replaced_as_a_whole(saved):
    write_folder(saved, "model.ubj", b"{L", {"task": "regression"}, VERSIONS)
    assert sorted(os.listdir(saved)) == ["grbb.json", "model.ubj"]
    assert os.listdir(saved.parent) == ["model"]
    assert read_folder(saved)[0].content == {"task": "regression"}


def test_an_empty_folder_is_filled(tmp_path):
    write_folder(tmp_path, "model.txt", b"", CONTENT, VERSIONS)
    assert read_folder(tmp_path)[1] == b""


def test_a_link_stays_a_link(saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    write_folder(link, "model.txt", b"new", CONTENT, VERSIONS)
    assert link.is_symlink()
    assert read_folder(saved)[1] == b"new"


@pytest.mark.parametrize("kind", ["file", "folder", "more", "foreign"])
def test_something_else_is_never_replaced(saved, tmp_path, kind):
    target = {"file": tmp_path / "file", "folder": tmp_path / "folder"}.get(kind, saved)
    if kind == "file":
        target.write_text("precious", encoding="utf-8")
    elif kind == "folder":
        target.mkdir()
        (target / "precious").write_text("", encoding="utf-8")
    elif kind == "more":
        (target / "precious").write_text("", encoding="utf-8")
    else:
        (target / "grbb.json").write_text("{}", encoding="utf-8")
    before = sorted(os.listdir(target)) if target.is_dir() else target.read_text(encoding="utf-8")
    with pytest.raises(FileExistsError, match="not a saved model, so it is not replaced"):
        write_folder(target, "model.txt", b"", CONTENT, VERSIONS)
    assert (sorted(os.listdir(target)) if target.is_dir() else target.read_text(encoding="utf-8")) == before


def test_a_failure_leaves_the_old_model(saved, monkeypatch):
    rename = os.rename

    def fail_once(source, target):
        if os.path.basename(source) == "new":
            raise OSError("disk full")
        rename(source, target)

    monkeypatch.setattr(os, "rename", fail_once)
    monkeypatch.setattr(_folder, "_exchange", lambda one, other: False)
    with pytest.raises(OSError, match="disk full"):
        write_folder(saved, "model.txt", b"new", CONTENT, VERSIONS)
    assert read_folder(saved)[1] == b"tree\nend of trees\n"
    assert os.listdir(saved.parent) == ["model"]


def test_a_value_that_json_lacks_writes_nothing(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_folder(tmp_path / "model", "model.txt", b"", {"x": float("nan")}, VERSIONS)
    assert os.listdir(tmp_path) == []


def test_nothing_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="no saved model"):
        read_folder(tmp_path / "model")


def test_a_file_in_place_of_the_folder(saved):
    with pytest.raises(ModelFileError, match="is a file, but a saved model is a folder"):
        read_folder(saved / "model.txt")


def test_a_folder_of_something_else(tmp_path):
    with pytest.raises(ModelFileError, match=r"has no grbb\.json"):
        read_folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "cut off"),
        ("not json", "cut off"),
        ("[" * 100_000, "cut off"),
        ("[1]", "not that of a model"),
        ("{}", "not that of a model"),
        ('{"format": "keras"}', "not that of a model"),
        ('{"format": "grbb_ext model"}', "version None"),
        ('{"format": "grbb_ext model", "format_version": "1"}', "version '1'"),
        ('{"format": "grbb_ext model", "format_version": 0}', "version 0"),
        ('{"format": "grbb_ext model", "format_version": 2}', "checksum differs"),
        (
            '{"format": "grbb_ext model", "format_version": 1, "versions": {"grbb_ext": "0.1.0"}}',
            r"by grbb_ext 0\.1\.0",
        ),
        ('{"format": "grbb_ext model", "format_version": NaN}', "NaN is no value"),
    ],
)
def test_a_json_of_something_else(saved, text, message):
    (saved / "grbb.json").write_text(text, encoding="utf-8")
    with pytest.raises(ModelFileError, match=message):
        read_folder(saved)


def test_bytes_that_are_no_text(saved):
    (saved / "grbb.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ModelFileError, match="refused"):
        read_folder(saved)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
def test_a_json_that_is_cut_off(saved, share):
    data = (saved / "grbb.json").read_bytes()
    (saved / "grbb.json").write_bytes(data[: int(share * len(data))])
    with pytest.raises(ModelFileError, match="cut off"):
        read_folder(saved)


def test_a_later_format_says_to_upgrade(saved):
    rewrite(saved, format_version=FORMAT_VERSION + 1, versions={"grbb_ext": "9.1"})
    with pytest.raises(
        ModelFileError, match=rf"version {FORMAT_VERSION + 1}, written by grbb_ext 9\.1.*pip install -U"
    ):
        read_folder(saved)
    rewrite(saved, versions=None)
    with pytest.raises(ModelFileError, match="of an unknown version"):
        read_folder(saved)


def test_a_changed_json(saved):
    rewrite(saved, content={**CONTENT, "classes": [1, 0]})
    with pytest.raises(ModelFileError, match="changed after it was written"):
        read_folder(saved)


def test_every_flipped_bit_of_the_booster_is_found(saved):
    data = (saved / "model.txt").read_bytes()
    for position in range(len(data)):
        (saved / "model.txt").write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(ModelFileError, match="checksum differs"):
            read_folder(saved)


def test_a_booster_that_is_cut_off_or_missing(saved):
    (saved / "model.txt").write_bytes(b"tree\n")
    with pytest.raises(ModelFileError, match="damaged, cut off or exchanged"):
        read_folder(saved)
    (saved / "model.txt").unlink()
    with pytest.raises(ModelFileError, match=r"model\.txt is missing"):
        read_folder(saved)


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "model.pkl"])
def test_the_json_cannot_name_another_file(saved, name):
    document = Document(CONTENT, VERSIONS, name, "0" * 64)
    (saved / "grbb.json").write_text(document.text(), encoding="utf-8")
    with pytest.raises(ModelFileError, match="unknown model file"):
        read_folder(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"content": [["task", "classification"]]},
        {"content": None},
        {"versions": {"grbb_ext": 1}},
        {"model": {"file": "model.txt"}},
        {"model": ["model.txt", "0"]},
        {"model": {"file": ["model.txt"], "sha256": "0"}},
    ],
    ids=str,
)
def test_parts_of_the_wrong_type(saved, changes):
    document = json.loads((saved / "grbb.json").read_text(encoding="utf-8")) | changes
    body = {name: document[name] for name in ("versions", "model", "content")}
    document["sha256"] = _checksum(body)
    (saved / "grbb.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(ModelFileError, match="lacks what a saved model has"):
        read_folder(saved)


def test_a_model_of_another_format_is_replaced(saved):
    rewrite(saved, format_version=1)
    write_folder(saved, "model.txt", b"new", CONTENT, VERSIONS)
    assert read_folder(saved)[1] == b"new"


@pytest.mark.parametrize("can_exchange", [True, False])
def test_savers_and_loaders_of_one_path(tmp_path, monkeypatch, can_exchange):
    """Saves raised OSError (Directory not empty), and loads between two renames FileNotFoundError."""
    if not can_exchange:
        monkeypatch.setattr(_folder, "_exchange", lambda one, other: False)
    path, failures, stop = tmp_path / "model", [], threading.Event()
    write_folder(path, "model.txt", b"0", {"saver": 0}, VERSIONS)

    def save(number):
        for _ in range(25):
            try:
                write_folder(path, "model.txt", str(number).encode() * 1000, {"saver": number}, VERSIONS)
            except Exception as error:
                failures.append(error)

    def load():
        while not stop.is_set():
            try:
                document, model = read_folder(path)
                assert model[:1] == str(document.content["saver"]).encode()
            except Exception as error:
                failures.append(error)

    savers = [threading.Thread(target=save, args=(number,)) for number in (1, 2)]
    loader = threading.Thread(target=load)
    for thread in (*savers, loader):
        thread.start()
    for thread in savers:
        thread.join()
    stop.set()
    loader.join()
    assert failures == []
    assert os.listdir(tmp_path) == ["model"]


def test_a_saver_that_was_killed_does_not_keep_loaders_waiting_for_long(tmp_path):
    (tmp_path / ".model.abc").mkdir()
    with pytest.raises(FileNotFoundError, match="no saved model"):
        read_folder(tmp_path / "model")
