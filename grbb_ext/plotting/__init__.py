"""Pictures, in scikit-learn's Display style; matplotlib is imported when one is drawn."""

from grbb_ext.plotting._variance_display import VarianceDisplay

__all__ = ["VarianceDisplay"]
