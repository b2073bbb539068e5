from __future__ import annotations

import io

import pytest

from grbb_ext import FeatureCosts

# Turney (1995), Ontario fee schedule.
HEART = """feature,cost,discount_cost,group,delay
age,1,1,,immediate
sex,1,1,,immediate
chol,7.27,5.17,A,delayed
fbs,5.2,3.1,A,delayed
restecg,15.5,15.5,,delayed
thalach,102.9,1,B,delayed
exang,87.3,1,C,delayed
oldpeak,87.3,1,C,delayed
slope,87.3,1,C,delayed
thal,102.9,1,B,delayed
"""
THYROID = """feature,cost,discount_cost,group
TT4,14.51,12.41,A
T4U,11.41,9.31,A
TSH,22.78,20.68,A
FTI,0.0,0.0,derived:TT4+T4U
"""


def read(text: str, **settings) -> FeatureCosts:
    return FeatureCosts.from_csv(io.StringIO(text), **settings)


def test_first_test_of_a_group_pays_cost_later_ones_discount_cost() -> None:
    costs = read(HEART)
    assert costs.total(["exang"]) == 87.3
    assert costs.total(["exang", "oldpeak", "slope"]) == 89.3
    assert costs.marginal("fbs", paid=["chol"]) == 3.1
    assert costs.marginal("chol", paid=["fbs"]) == 5.17
    assert costs.marginal("thal", paid=["exang"]) == 102.9
    assert costs.total(costs.features) == 2 + 10.37 + 15.5 + 103.9 + 89.3


def test_shared_price_has_no_binary_rounding() -> None:
    assert 7.27 - 5.17 != 5.2 - 3.1
    costs = read(HEART)
    assert dict(zip(costs.sources, costs.prices.tolist(), strict=True))["A"] == 2.1


def test_a_derived_feature_needs_the_tests_it_is_made_of() -> None:
    costs = read(THYROID)
    assert costs.sources_of("FTI") == ("A", "TT4", "T4U")
    assert costs.total(["FTI"]) == 23.82
    assert costs.marginal("FTI", paid=["TT4"]) == 9.31
    assert costs.marginal("TSH", paid=["FTI"]) == 20.68


def test_needs_column_nests_and_may_cost_something() -> None:
    costs = read("feature,cost,needs\na,1,\nb,2,\nindex,0.5,ratio+b\nratio,0,a + b\n")
    assert costs.total(["ratio"]) == 3.0
    assert costs.total(["index"]) == 3.5
    assert costs.sources_of("index") == ("a", "b", "index")


def test_empty_entries_after_the_last_column_are_left_out() -> None:
    assert read("feature,cost\na,1,,\n").total(["a"]) == 1.0


def test_file_and_settings(tmp_path) -> None:
    path = tmp_path / "costs.csv"
    path.write_text("\ufeff" + HEART, encoding="utf-8")
    assert FeatureCosts.from_csv(path) == read(HEART)
    assert FeatureCosts.from_csv(str(path), default=2.0, per_tree=0.1).default == 2.0


@pytest.mark.parametrize("head", ["\ufefffeature,cost", '\ufeff"feature","cost"', "feature, cost"])
def test_headers_as_programs_write_them(tmp_path, head) -> None:
    path = tmp_path / "costs.csv"
    path.write_text(f"{head}\na,2\n", encoding="utf-8")
    with open(path, encoding="utf-8") as file:
        assert FeatureCosts.from_csv(file) == FeatureCosts.from_csv(path) == FeatureCosts({"a": 2.0})


def test_a_group_bought_whole_by_its_first_price_has_one_source() -> None:
    costs = read("feature,cost,discount_cost,group\ng1,3,0,gist\ng2,3,0,gist\nfree,0,,\n")
    assert costs.sources == ("gist", "free")
    assert costs.total(["g1", "g2", "free"]) == 3.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("feature,price\na,1\n", "no column 'cost'"),
        ("feature,cost\n", "no rows"),
        ("feature,cost\na,one\n", "cost of 'a' must be a number, got 'one'"),
        ("feature,cost\na,\n", "cost of 'a' must be a number"),
        ("feature,cost\na,-1\n", "at least 0"),
        ("feature,cost\na,nan\n", "finite"),
        ("feature,cost\na,1\na,2\n", "'a' is named twice"),
        ("feature,cost\n,1\n", "Line 2 .* no feature name"),
        ("feature,cost\na,1\nb,7,27\n", "Line 3 .* more entries than the header"),
        ("feature,cost,group\na,1,A\n", "has no discount_cost"),
        ("feature,cost,discount_cost,group\na,1,2,A\n", "discount_cost 2 is above cost 1"),
        ("feature,cost,cost \na,1,2\n", "several columns called 'cost'"),
        ("feature,cost,discount_cost,Group\na,3,1,A\nb,3,1,A\n", "'a' has a discount_cost .* in no group"),
        ("feature,cost,discount_cost,group\na,3,1,A\nb,5,1,A\n", "Group 'A' has no one shared price"),
        ("feature,cost,discount_cost,group\na,3,1,b\nb,5,,\n", "name of a group and of a feature"),
        ("feature,cost,needs\na,1,\nr,0,a+bb\n", "derived from 'bb'. Unknown feature"),
        ("feature,cost,needs\na,0,b\nb,0,a\n", "in a circle: a -> b -> a"),
    ],
)
def test_wrong_tables(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(text)
