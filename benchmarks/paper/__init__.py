"""The experiments of the paper: its methods, and how their hyper-parameters are found."""
