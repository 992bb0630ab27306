"""How much of the k features of ``gape`` is information, by damping, on ZINC, CYCLES and PATTERN.

    GAPE_DATA=... python benchmarks/damping.py [--graphs 1000] [--states 32]

Per setting, the standard deviations of the features along their principal directions: the largest ones, how many exceed
1 % and 0.1 % of the largest, and the participation ratio (Σσ²)²/Σσ⁴, a number of directions weighted by their size.
Directions of less than 1e-6 of the features' size are lost in float32.
"""

import argparse
import warnings

import torch

from gape.encodings import GAPE
from gape.experiments.runtime.workloads import SIZES, workload

SETTINGS = {
    "γ = 0.02 (the paper's)": {"damping": 0.02, "relative": False},
    **{f"γ = {gamma}/ρ(A)": {"damping": gamma, "relative": True} for gamma in (0.5, 0.8, 0.9, 0.95, 0.99)},
}


def deviations(features: torch.Tensor) -> torch.Tensor:
    """Return the standard deviations along the principal directions, descending."""
    centred = features.double() - features.double().mean(0)
    return torch.linalg.svdvals(centred) / len(features) ** 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--states", type=int, default=32)
    chosen = parser.parse_args()
    print("| graphs | damping | deviations | above 1 % | above 0.1 % | participation |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for name in SIZES:
        graph = workload(name, graphs=chosen.graphs).graph()
        for title, settings in SETTINGS.items():
            with warnings.catch_warnings(action="ignore"):  # beyond the sum over runs: the paper's setting on PATTERN
                sizes = deviations(GAPE(chosen.states, dtype="float64", **settings)(graph))
            shown = ", ".join(f"{value:.2g}" for value in sizes[:5].tolist())
            counts = [int((sizes > share * sizes[0]).sum()) for share in (1e-2, 1e-3)]
            participation = float(sizes.square().sum() ** 2 / sizes.pow(4).sum())
            cells = f"{shown} | {counts[0]} | {counts[1]} | {participation:.2f}"
            print(f"| {name} | {title} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
