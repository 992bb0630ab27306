"""Tables as a graph: customers, orders and products, and what an encoding without relations cannot see.

Every customer placed two orders of two products each and sent two of the four products back: one of each order, or a
whole order. Which of the two is not in any count of rows; it is in the paths kept–order–returned. An encoding of the
graph without relations is the same whatever was returned, and guesses; one with a transition matrix per relation knows.

Needs PyTorch Geometric: pip install 'gape[pyg]'
"""

import numpy as np
import torch
from torch_geometric.data import HeteroData

import gape
from gape.pyg import AddGAPE

# The tables. customers: customer, pattern; orders: order, customer; lines: order, product, was it returned?
generator = np.random.default_rng(0)
customers, products = 400, 1000
whole_order = np.arange(customers) % 2
orders = [(order, order // 2) for order in range(2 * customers)]
lines = []
for order, customer in orders:
    first, second = generator.choice(products, 2, replace=False)
    returned = (order % 2, order % 2) if whole_order[customer] else (0, 1)
    lines += [(order, first, returned[0]), (order, second, returned[1])]

# A node per row, an edge per key. Kept and returned lines are two relations.
shop = HeteroData()
shop["customer"].num_nodes, shop["order"].num_nodes, shop["product"].num_nodes = customers, 2 * customers, products
shop["order", "by", "customer"].edge_index = torch.tensor(orders).T
for kind, name in enumerate(("kept", "returned")):
    edges = [(order, product) for order, product, returned in lines if returned == kind]
    shop["order", name, "product"].edge_index = torch.tensor(edges).T
print(shop)


def accuracy(rows: torch.Tensor) -> float:
    """Fit a linear rule to the first 300 customers, and apply it to the others."""
    design = torch.cat([(rows - rows.mean(0)) / rows.std(0).clamp(min=1e-9), torch.ones(len(rows), 1)], 1).double()
    target = torch.from_numpy(2.0 * whole_order - 1.0)
    ridge = design[:300].T @ design[:300] + torch.eye(design.shape[1])
    weights = torch.linalg.solve(ridge, design[:300].T @ target[:300])
    return ((design[300:] @ weights).sign() == target[300:]).double().mean().item()


# Without relations: the same nodes and edges in one graph, walked both ways.
untyped = gape.Graph.from_edges(gape.as_graph(shop).edge_index.T, undirected=True)
rows = gape.encode(untyped, "gape", states=16, damping=0.5)[:customers]
print(f"without relations: {accuracy(rows):.2f}")

# With relations: node types are labels, every relation and its reverse has a transition matrix.
shop = AddGAPE(states=16, damping=0.5, reverse_relations=True)(shop)
print(f"with relations: {accuracy(shop['customer'].gape):.2f}")
