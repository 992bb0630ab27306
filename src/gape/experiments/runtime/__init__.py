"""The runtime table: workloads, baselines, measurement."""
