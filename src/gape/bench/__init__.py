"""The benchmark: runtimes and training runs, ours beside the paper's."""
