"""Solvers are told apart from what is none, and their settings are checked when they are made."""

import pytest

import gape
from gape.solvers import Auto, FixedPoint, Kronecker, Krylov, Schur, Series, Spectral


@pytest.mark.parametrize("solver", ["series", Series, 3])
def test_what_is_no_solver_is_refused(solver):
    with pytest.raises(ValueError, match=r"solver must be one of gape\.solvers with its settings"):
        gape.solve(gape.Automaton.katz(0.1), [(0, 1)], solver=solver)


@pytest.mark.parametrize(
    ("solver", "settings", "message"),
    [
        (Series, {"max_steps": True}, "max_steps must be a whole number, got True"),
        (Krylov, {"max_steps": 2.5}, "max_steps must be a whole number, got 2.5"),
        (Krylov, {"give_up": 0}, "give_up, unless None for never, must be at least 1"),
        (Auto, {"dense_nodes": -5}, "dense_nodes must be at least 0, got -5"),
        (Spectral, {"max_nodes": 0}, "max_nodes must be at least 1, got 0"),
        (Schur, {"max_nodes": "9"}, "max_nodes must be a whole number, got '9'"),
        (Kronecker, {"max_unknowns": 1e3}, "max_unknowns must be a whole number, got 1000.0"),
        (FixedPoint, {"restart": 0}, "restart must be at least 1, got 0"),
        *(
            (kind, {"tolerance": bad}, "tolerance must be in")
            for kind in (Auto, FixedPoint, Krylov, Series)
            for bad in (0, 1, "1e-9")
        ),
    ],
)
def test_settings_that_solvers_cannot_have_are_refused(solver, settings, message):
    with pytest.raises(ValueError, match=message):
        solver(**settings)
