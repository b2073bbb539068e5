"""The paper's experiments: its baselines, its metrics and its figures."""
