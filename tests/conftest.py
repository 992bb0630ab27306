"""Settings of all tests."""

from hypothesis import settings

# How long an example takes depends on what else the machine does: no test fails by the clock.
settings.register_profile("gape", deadline=None, max_examples=50)
settings.load_profile("gape")
