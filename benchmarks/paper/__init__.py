"""The experiments of the paper: its methods and baselines, and how their hyper-parameters are found."""
