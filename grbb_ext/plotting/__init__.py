"""Pictures, in scikit-learn's Display style; matplotlib is imported when one is drawn."""

from grbb_ext.plotting._curves import CostCurveDisplay
from grbb_ext.plotting._rows import EvidenceDisplay, PropagationDisplay, VarianceDisplay

__all__ = ["CostCurveDisplay", "EvidenceDisplay", "PropagationDisplay", "VarianceDisplay"]
