"""Cells that train in a second."""

import pytest

#: Small data, small model, a schedule that lowers the learning rate within a few epochs.
TINY = {
    "data.train": "20",
    "data.val": "10",
    "data.test": "12",
    "layers": "2",
    "hidden": "16",
    "heads": "2",
    "batch_size": "6",
    "lr": "0.02",
    "patience": "0",
    "max_epochs": "6",
}


@pytest.fixture
def tiny():
    return dict(TINY)


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Generated graphs and encodings of tests are kept away from those of the user."""
    monkeypatch.setenv("GAPE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
