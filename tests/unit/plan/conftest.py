"""Properties are tried on a shared, busy computer: how long one try takes says nothing."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
