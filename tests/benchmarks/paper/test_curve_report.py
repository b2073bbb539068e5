from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.paper.curve_report import (
    Curves,
    Measured,
    at_budget,
    budget_table,
    curves_of,
    draw,
    effort,
    lead_table,
    markdown,
    pairs_table,
    reach_table,
)

SEEDS = range(6)


def row(method: str, seed: int, settings: dict[str, float], cost: float, value: float) -> dict[str, str]:
    details = {"everything": 20} if method == "no features" else {}
    fields = {"data": "toy", "n_labels": 10, "metric": "accuracy", "method": method, "seed": seed, "cost": cost}
    fields |= {"value": value, "settings": json.dumps(settings), "details": json.dumps(details)}
    return {k: str(v) for k, v in (fields | {"grbb_ext": "1", "xgboost": "2", "lightgbm": "3"}).items()}


def small() -> list[dict[str, str]]:
    """Return six runs. The default is cheap and good, GBRT dear, LRL1 in between and noisy."""
    rows = []
    for seed in SEEDS:
        up = 0.01 * (seed % 2)
        rows += [row("no features", seed, {}, 0, 0.5)]
        rows += [
            row("GRBB (default)", seed, {"mu": 0.0}, 16, 0.90 + up),
            row("GRBB (default)", seed, {"mu": 4}, 4, 0.80),
        ]
        rows += [row("GBRT", seed, {"first": 10}, 10, 0.70), row("GBRT", seed, {"first": 20}, 10, 0.75)]
        rows += [row("LRL1", seed, {"penalty": 1.0}, 0, 0.5), row("LRL1", seed, {"penalty": 0.1}, 6, 0.5 + 60 * up)]
    return rows


def test_values_under_a_budget_by_hand() -> None:
    curves = Curves(small(), "no features")
    assert curves.everything == 20
    assert curves.at("GBRT", 9) == dict.fromkeys(SEEDS, 0.5)  # it has no model at this cost
    assert curves.at("GBRT", 10) == dict.fromkeys(SEEDS, 0.75)  # more trees at the same cost
    assert curves.at("GRBB (default)", 15) == dict.fromkeys(SEEDS, 0.80)
    assert curves.at("GRBB (default)", 16)[1] == pytest.approx(0.91)


def test_the_dearest_point_counts_even_if_a_cheaper_one_tests_better() -> None:
    rows = [row("GBRT", 0, {"first": 10}, 1, 0.9), row("GBRT", 0, {"first": 20}, 2, 0.6)]
    assert Curves(rows, "no features").at("GBRT", 5) == {0: 0.6}
    equal = [Measured(2, 1, 0.6, "first"), Measured(2, 1, 0.9, "second")]
    assert at_budget(equal, 5, 0.5) == 0.6  # not the one that tests better


def test_bold_needs_two_errors_against_every_other_method() -> None:
    lines = budget_table(Curves(small(), "no features"), (4, 10, 16))
    # Under 4 the others are at .5 in every run; under 10 LRL1 is at .5 and 1.1 in turn, so nobody wins.
    assert lines[2] == "| LRL1 | 0.500 ± 0.000 | 0.800 ± 0.134 | 0.800 ± 0.134 |"
    assert lines[3] == "| GBRT | 0.500 ± 0.000 | 0.750 ± 0.000 | 0.750 ± 0.000 |"
    assert lines[4] == "| GRBB (default) | **0.800 ± 0.000** | 0.800 ± 0.000 | 0.905 ± 0.002 |"
    assert lines[5] == "| no features | 0.500 | | |"


def test_leads_are_averaged_over_budgets_first() -> None:
    curves = Curves(small(), "no features")
    # (.8 - .5 + .8 - .75) / 2 = .175 in every run.
    assert curves.lead("GRBB (default)", "GBRT", (4, 10)) == pytest.approx((0.175, 0, 6))
    table = lead_table(curves, (4, 10))
    assert "| GBRT | **+0.175 ± 0.000** |" in table
    assert not any("GRBB (default) |" in line for line in table[2:])


def test_the_papers_comparisons_by_set_and_labels() -> None:
    curves = Curves(small(), "no features")
    lines = pairs_table({("toy", 10): curves}, {("toy", 10): [4, 10]})
    # LRL1 is at .5 under 4, and at .5 and 1.1 in turn under 10; GBRT at .5 and .75: -.125 and .175.
    assert lines[0] == "| first minus second | toy, 10 |"
    assert lines[2:] == ["| LRL1 - GBRT | +0.025 ± 0.067 |"]


def test_mean_curves_go_from_large_to_small_mu() -> None:
    curves = Curves(small(), "no features")
    assert curves.mean_curve("GRBB (default)") == ([4.0, 16.0], pytest.approx([0.8, 0.905]))
    assert reach_table({("toy", 10): curves})[-1] == "| GRBB (default) | 4.0 to 16.0 |"


@pytest.mark.parametrize(
    ("small_one", "large_one"),
    [({"mu": 256.0}, {"mu": 0.0}), ({"penalty": 1.0}, {"penalty": 1e-4}), ({"keep": 0.1}, {"keep": 1.0})],
)
def test_effort_grows_from_cheap_to_dear(small_one: dict[str, float], large_one: dict[str, float]) -> None:
    assert effort(json.dumps({"trees": 200} | small_one)) < effort(json.dumps({"trees": 200} | large_one))


def test_all_tables_and_the_picture(tmp_path: Path) -> None:
    text = markdown(small(), {"toy": (4, 10, 16)}, ("accuracy",), "labels", "no features")
    assert "## toy, 10 labels: accuracy (6 runs)" in text
    assert "| all features | 20 |" in text
    assert "Leads at low cost" in text
    draw(curves_of(small(), "no features"), "accuracy", "labels", tmp_path / "toy.png")
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")
