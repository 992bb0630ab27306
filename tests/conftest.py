"""Settings of all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does: no test fails by the clock.
# The same examples in every run of `make test`; `make test-search` looks for new ones.
settings.register_profile("gape", deadline=None, max_examples=50, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=200)
settings.load_profile("gape")
