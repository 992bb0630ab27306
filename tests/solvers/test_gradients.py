"""The adjoint rule against finite differences, for every solver and everything that can be learned."""

import warnings

import pytest
import torch

import gape
from gape.graph.walk_matrix import NAMES
from gape.solvers import AlgebraicOnlyWarning, FixedPoint, Kronecker, Krylov, Schur, Series, Spectral

pytestmark = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")

DIRECTED = gape.Graph.from_edges(
    [(0, 1), (1, 2), (2, 0), (2, 3), (3, 3)], edge_weight=[1.0, 0.5, 2.0, -1.0, 0.3], labels=[0, 1, 0, 1]
)
UNDIRECTED = gape.Graph.union(
    [
        gape.Graph.from_edges([(0, 1), (1, 2), (2, 3)], undirected=True, labels=[0, 1, 1, 0]),
        gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True, labels=[1, 0, 0]),
    ]
)
CASES = [
    (Series(), DIRECTED, 0.15),
    (Krylov(), DIRECTED, 0.9),
    (Krylov(), UNDIRECTED, 0.9),
    (Spectral(), UNDIRECTED, 0.9),
    (Schur(), DIRECTED, 0.9),
    (Kronecker(), DIRECTED, 0.9),
    (FixedPoint(), DIRECTED, 0.9),
    (None, DIRECTED, 0.15),
]


def machine(states=3, labels=2, damping=0.9, types=None, seed=0):
    generator = torch.Generator().manual_seed(seed)
    shape = (states, states) if types is None else (types, states, states)
    alpha = torch.randn(states, labels, generator=generator, dtype=torch.float64, requires_grad=True)
    mu = (damping / states * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
    tau = torch.randn(states, labels, generator=generator, dtype=torch.float64, requires_grad=True)
    return alpha, mu, tau


@pytest.mark.parametrize(("solver", "graph", "damping"), CASES, ids=lambda x: type(x).__name__)
def test_first_and_second_derivatives_with_respect_to_the_automaton(solver, graph, damping):
    def weights(alpha, mu, tau):
        return gape.solve(gape.Automaton(alpha, mu, tau), graph, solver=solver).weights

    inputs = machine(damping=damping)
    assert torch.autograd.gradcheck(weights, inputs)
    assert torch.autograd.gradgradcheck(weights, inputs)


@pytest.mark.parametrize("matrix", ["adjacency", "random_walk", "laplacian"])
@pytest.mark.parametrize("solver", [Series(), Krylov(), Schur(), Kronecker(), None], ids=str)
def test_first_and_second_derivatives_with_respect_to_edge_weights(solver, matrix):
    if isinstance(solver, Series) and matrix == "laplacian":
        pytest.skip("the sum over runs diverges on this Laplacian; the other solvers cover it")
    weights = torch.tensor([1.0, 0.5, 2.0, 1.1, 0.3], dtype=torch.float64, requires_grad=True)

    def encode(edge_weight, mu):
        graph = gape.Graph(DIRECTED.edge_index, 4, edge_weight=edge_weight, labels=DIRECTED.labels)
        automaton = gape.Automaton(alpha.detach(), mu)
        return gape.solve(automaton, graph, solver=solver, matrix=matrix).weights

    alpha, mu, _ = machine(states=2, damping=0.15)
    assert torch.autograd.gradcheck(encode, (weights, mu))
    assert torch.autograd.gradgradcheck(encode, (weights, mu))


@pytest.mark.parametrize("by", ["node", "edge"])
def test_derivatives_of_typed_transitions(by):
    graph = gape.Graph(
        DIRECTED.edge_index, 4, labels=DIRECTED.labels, edge_type=torch.tensor([0, 1, 1, 0, 1]), edge_weight=None
    )
    edge_weight = DIRECTED.edge_weight.clone().requires_grad_()

    def weights(alpha, mu, edge_weight):
        weighted = gape.Graph(
            graph.edge_index, 4, edge_weight=edge_weight, labels=graph.labels, edge_type=graph.edge_type
        )
        return gape.solve(gape.Automaton(alpha, mu, transition_by=by), weighted).weights

    alpha, mu, _ = machine(states=2, types=2)
    assert torch.autograd.gradcheck(weights, (alpha, mu, edge_weight))
    assert torch.autograd.gradgradcheck(weights, (alpha, mu, edge_weight))


@pytest.mark.parametrize("matrix", [name for name in NAMES if name != "adjacency"])
def test_each_direction_of_an_undirected_edge_has_its_own_derivative(matrix):
    # The weights of both directions are equal, but nothing ties them: each is moved alone.
    edges = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    weights = torch.tensor([1.0, 1.0, 2.0, 2.0, 0.7, 0.7], dtype=torch.float64, requires_grad=True)
    mu = 0.3 * gape.Automaton.random(states=2, damping=1.0).transition

    def encode(edge_weight):
        graph = gape.Graph(edges, 3, edge_weight=edge_weight)
        return gape.solve(gape.Automaton([[1.0], [0.4]], mu), graph, matrix=matrix).weights

    assert torch.autograd.gradcheck(encode, (weights,))
    assert torch.autograd.gradgradcheck(encode, (weights,))


@pytest.mark.parametrize("matrix", NAMES)
def test_weights_that_are_learned_give_the_same_encoding_to_the_last_bit(matrix):
    edges = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
    weights = torch.tensor([0.1, 0.1, 0.2, 0.2, 0.7, 0.7], dtype=torch.float64)
    fixed = gape.Graph(edges, 3, edge_weight=weights).walk(matrix)
    learned = gape.Graph(edges, 3, edge_weight=weights.clone().requires_grad_()).walk(matrix)
    assert torch.equal(learned.dense().detach(), fixed.dense())
    assert learned.symmetric == fixed.symmetric


def test_a_basis_computed_once_serves_every_automaton_and_its_gradient():
    basis = gape.prepare(UNDIRECTED)
    for seed in range(3):
        alpha, mu, _ = machine(seed=seed)
        ready = gape.solve(gape.Automaton(alpha, mu), UNDIRECTED, basis=basis)
        fresh = gape.solve(gape.Automaton(alpha, mu), UNDIRECTED, solver=Schur())
        assert torch.allclose(ready.weights, fresh.weights, atol=1e-10)
        probe = torch.randn_like(ready.weights)
        for a, b in zip(
            torch.autograd.grad((ready.weights * probe).sum(), (alpha, mu)),
            torch.autograd.grad((fresh.weights * probe).sum(), (alpha, mu)),
            strict=True,
        ):
            assert torch.allclose(a, b, atol=1e-9)


def test_a_basis_of_another_graph_or_matrix_is_refused():
    basis = gape.prepare(UNDIRECTED)
    automaton = gape.Automaton.random(states=2, labels=2)
    with pytest.raises(ValueError, match="random_walk"):
        gape.solve(automaton, UNDIRECTED, basis=basis, matrix="random_walk")
    with pytest.raises(ValueError, match="prepare it for this graph"):
        gape.solve(automaton, DIRECTED, basis=basis)


def test_complex_transitions_have_gradients_too():
    generator = torch.Generator().manual_seed(0)
    mu = (0.3 * torch.randn(2, 2, generator=generator, dtype=torch.complex128)).requires_grad_()
    alpha = torch.randn(2, 2, generator=generator, dtype=torch.complex128, requires_grad=True)

    def weights(alpha, mu):
        return gape.solve(gape.Automaton(alpha, mu), UNDIRECTED, solver=Krylov()).weights

    assert torch.autograd.gradcheck(weights, (alpha, mu))


@pytest.mark.parametrize("learn_transition", [True, False])
def test_a_basis_is_refused_where_it_would_drop_the_gradient_of_edge_weights(learn_transition):
    weights = torch.ones(UNDIRECTED.num_edges, dtype=torch.float64)
    fixed, learned = (
        gape.Graph(UNDIRECTED.edge_index, 7, edge_weight=w, ptr=UNDIRECTED.ptr)
        for w in (weights, weights.clone().requires_grad_())
    )
    automaton = gape.Automaton([[1.0]], torch.full((1, 1), 0.2, dtype=torch.float64, requires_grad=learn_transition))
    for ready in (gape.prepare(fixed), gape.prepare(learned)):
        with pytest.raises(ValueError, match=r"edge_weight of Graph\(graphs=2, .* requires gradients"):
            gape.solve(automaton, learned, basis=ready)
    with torch.no_grad():
        found = gape.solve(automaton, learned, basis=gape.prepare(fixed)).weights
    assert torch.allclose(found, gape.solve(automaton, fixed).weights)


def test_training_steps_can_repeat_on_one_graph_object():
    edge_weight = torch.ones(6, dtype=torch.float64, requires_grad=True)
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
    graph = gape.Graph(graph.edge_index, 3, edge_weight=edge_weight)
    automaton = gape.Automaton.random(states=3, damping=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", AlgebraicOnlyWarning)
        gradients = []
        for _ in range(2):
            edge_weight.grad = None
            gape.solve(automaton, graph, matrix="random_walk").weights.square().sum().backward()
            gradients.append(edge_weight.grad.clone())
    assert torch.equal(*gradients)


def test_a_basis_is_refused_by_automata_whose_labels_it_does_not_follow():
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True, labels=[0, 1, 2])
    three = gape.Automaton.random(states=2, labels=3)
    with pytest.raises(ValueError, match="labels"):
        gape.solve(three, graph, basis=gape.prepare(graph, labels=1))
    with pytest.raises(ValueError, match="labels"):
        gape.solve(gape.Automaton.random(states=2), graph, basis=gape.prepare(graph))
    typed = gape.Automaton(three.initial, three.transition.expand(3, 2, 2))
    with pytest.raises(ValueError, match="type"):
        gape.solve(typed, graph, basis=gape.prepare(graph))
    # Labels that no node has ask for nothing.
    alike = graph.with_labels([0, 0, 0])
    ready = gape.solve(three, alike, basis=gape.prepare(alike)).weights
    assert torch.allclose(ready, gape.solve(three, alike).weights)
    more = gape.Automaton.random(states=2, labels=5)
    assert torch.allclose(gape.solve(more, graph, basis=gape.prepare(graph)).weights, gape.solve(more, graph).weights)


def test_gradients_of_large_singular_equations_say_what_their_limit_is():
    nodes = torch.arange(60)
    ring = gape.Graph(torch.stack([nodes, (nodes + 1) % 60]), 60)
    transition = torch.eye(70, dtype=torch.float64, requires_grad=True)
    solution = gape.solve(gape.Automaton(torch.ones(70, 1), transition), ring, on_singular="least_squares")
    with pytest.raises(ValueError, match=r"singular has 4200 unknowns .* limited to 4096; take fewer states"):
        solution.weights.sum().backward()
