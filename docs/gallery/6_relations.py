"""
Relations
=========

Customers, their orders, and products kept or sent back. One transition matrix per relation separates customers that
look the same without relations.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch_geometric.data import HeteroData

import gape
from gape.pyg import AddGAPE

generator = np.random.default_rng(0)
customers, products = 300, 1200
edges: dict[str, list[tuple[int, int]]] = {"kept": [], "returned": []}
for order in range(2 * customers):
    whole = order // 2 % 2  # every second customer returned a whole order, the others half of each
    for line, product in enumerate(generator.choice(products, 2, replace=False)):
        edges["returned" if (order if whole else line) % 2 else "kept"].append((order, product))

shop = HeteroData()
shop["customer"].num_nodes, shop["order"].num_nodes, shop["product"].num_nodes = customers, 2 * customers, products
shop["order", "by", "customer"].edge_index = torch.arange(2 * customers).repeat(2, 1) // torch.tensor([[1], [2]])
for name, pairs in edges.items():
    shop["order", name, "product"].edge_index = torch.tensor(pairs).T

# %%
# The same graph with and without relations, walked both ways.

plain = gape.Graph.from_edges(gape.as_graph(shop).edge_index.T, undirected=True)
untyped = gape.encode(plain, "gape", states=16, damping=0.5)[:customers]
typed = AddGAPE(states=16, damping=0.5, reverse_relations=True)(shop)["customer"].gape

# %%
# A linear rule, fitted to half of the customers, applied to the others. Blue: half of each order came back. Red: one
# whole order.

whole = np.arange(customers) % 2 == 1
fitted = np.arange(customers) < customers // 2
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharey=True)
for axis, rows, title in zip(axes, (untyped, typed), ("without relations", "with relations"), strict=True):
    scaled = ((rows - rows.mean(0)) / rows.std(0).clamp(min=1e-9)).double().numpy()
    ridge = scaled[fitted].T @ scaled[fitted] + 3 * np.eye(16)
    score = scaled @ np.linalg.solve(ridge, scaled[fitted].T @ (2.0 * whole[fitted] - 1))
    for kind, colour in ((~whole, "#1b6ca8"), (whole, "#d1603d")):
        axis.hist(score[kind & ~fitted], np.linspace(-2, 2, 33), color=colour, alpha=0.7)
    axis.set(title=title, xlabel="score of customers not fitted")
axes[0].set_ylabel("customers")
