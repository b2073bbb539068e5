from __future__ import annotations

from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest

from benchmarks import data as data_module
from benchmarks.data import BUILT_IN, is_available, load
from benchmarks.ranking import load_mq2008, load_mslr, load_yahoo, read_costs


def write_set(folder: Path, name: str, y: list[int], **more: object) -> None:
    X = np.arange(2.0 * len(y), dtype=np.float32).reshape(-1, 2)
    np.savez(folder / f"{name}.npz", X=X, y=np.array(y), **more)


@pytest.mark.parametrize(
    ("name", "file", "y", "expected"),
    [
        ("thyroid", "thyroid", [1, 2, 3, 3], [1, 1, 0, 0]),
        ("scene15", "scene15", [1, 8, 9, 15], [0, 0, 1, 1]),
        ("coil20", "coil20", [10, 11], [0, 1]),
        ("usps", "usps", [4, 5, 9], [0, 1, 1]),
        ("isolet", "isolet", [13, 14], [0, 1]),
        ("mnist3v8", "mnist3v8", [3, 8], [0, 1]),
        ("heart_disease", "heart_disease", [0, 1, 4], [0, 1, 1]),
        ("mq2008", "mq2008", [0, 1, 2], [0, 1, 1]),
    ],
)
def test_classes_are_made_as_the_table_of_the_sets_says(
    tmp_path: Path, name: str, file: str, y: list[int], expected: list[int]
) -> None:
    write_set(tmp_path, file, y)
    assert load(name, tmp_path).y.tolist() == expected


def test_a_pair_of_digits_leaves_the_other_rows_out(tmp_path: Path) -> None:
    write_set(tmp_path, "usps", [3, 4, 5, 9, 3], split=np.array([0, 0, 1, 1, 0]))
    pair = load("usps3v5", tmp_path)
    assert pair.y.tolist() == [0, 1, 0]
    assert pair.X[:, 0].tolist() == [0, 4, 8]
    assert pair.is_test is not None
    assert pair.is_test.tolist() == [False, True, False]


def test_isolet_is_split_by_speakers(tmp_path: Path) -> None:
    write_set(tmp_path, "isolet", [1, 14, 1, 14, 26], part=np.array([1, 2, 5, 5, 4]))
    is_test = load("isolet", tmp_path).is_test
    assert is_test is not None
    assert is_test.tolist() == [False, False, True, True, False]


def test_prices_come_by_column_number(tmp_path: Path) -> None:
    write_set(tmp_path, "thyroid", [1, 3], feature_names=np.array(["age", "TSH"]))
    (tmp_path / "thyroid_costs.csv").write_text(
        "feature,cost,discount_cost,group,delay\nTSH,22.78,22.78,,delayed\nage,1,1,,immediate\n"
    )
    costs = load("thyroid", tmp_path).costs
    assert costs is not None
    assert costs.total([0]) == 1
    assert costs.total([0, 1]) == pytest.approx(23.78)


def test_sets_of_scikit_learn_need_no_folder(tmp_path: Path) -> None:
    for name in BUILT_IN:
        assert is_available(name, tmp_path)
        assert set(np.unique(load(name, tmp_path).y)) == {0, 1}
    assert not is_available("usps", tmp_path)
    with pytest.raises(FileNotFoundError, match="GRBB_DATA"):
        load("usps", tmp_path)
    with pytest.raises(ValueError, match="no data set 'ups'"):
        load("ups", tmp_path)


def test_openml_by_name_and_out_of_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.array([[1.0], [2.0], [3.0]])
    monkeypatch.setattr(data_module, "fetch_openml", lambda name, **_: (X, np.array(["b", "a", "b"])))
    assert load("openml:some").y.tolist() == [1, 0, 1]

    def fail(name: str, **_: object) -> None:
        raise URLError("no network")

    monkeypatch.setattr(data_module, "fetch_openml", fail)
    with pytest.raises(ConnectionError, match="scikit-learn"):
        load("openml:other")


def test_yahoo_files(tmp_path: Path) -> None:
    (tmp_path / "set1.train.txt").write_text("2 qid:1 1:0.5 700:0.25\n0 qid:1 3:1\n1 qid:2 2:0.125\n")
    (tmp_path / "set1.test.txt").write_text("4 qid:7 1:1\n")
    (tmp_path / "costs.txt").write_text("".join(f"{1 + i % 5}\n" for i in range(700)))
    ranking = load_yahoo(tmp_path, costs="costs.txt")
    assert ranking.X.shape == (4, 700)
    assert ranking.X[0, [0, 1, 699]].tolist() == [0.5, 0, 0.25]
    assert ranking.relevance.tolist() == [2, 0, 1, 4]
    assert ranking.qid.tolist() == [1, 1, 2, 7]
    assert ranking.is_test.tolist() == [False, False, False, True]
    assert ranking.costs is not None
    assert ranking.costs.total([0, 1, 6]) == 1 + 2 + 2


def test_prices_may_name_their_features(tmp_path: Path) -> None:
    path = tmp_path / "costs.txt"
    path.write_text("2, 5\n3, 20\n")
    assert read_costs(path, 3).total([0, 1, 2]) == 25
    path.write_text("4 5\n")
    with pytest.raises(ValueError, match="1 to 3"):
        read_costs(path, 3)
    path.write_text("4\n5\n")
    with pytest.raises(ValueError, match="2 prices for 3"):
        read_costs(path, 3)


def test_mslr_files(tmp_path: Path) -> None:
    (tmp_path / "Fold2").mkdir()
    (tmp_path / "Fold2" / "train.txt").write_text("2 qid:1 1:3 136:0.5\n0 qid:5 1:1\n")
    (tmp_path / "Fold2" / "test.txt").write_text("1 qid:6 2:4\n")
    ranking = load_mslr(tmp_path, fold=2)
    assert ranking.X.shape == (3, 136)
    assert ranking.X[:, 0].tolist() == [3, 1, 0]
    with pytest.raises(FileNotFoundError, match="licence"):
        load_mslr(tmp_path)


def test_scattered_queries_are_refused(tmp_path: Path) -> None:
    for qid, fine in ((np.array([1, 1, 2]), True), (np.array([1, 2, 1]), False)):
        write_set(tmp_path, "mq2008", [0, 1, 2], qid=qid, split=np.array([0, 0, 1]))
        if fine:
            assert load_mq2008(tmp_path).is_test.tolist() == [False, False, True]
        else:
            with pytest.raises(ValueError, match="follow one another"):
                load_mq2008(tmp_path)
