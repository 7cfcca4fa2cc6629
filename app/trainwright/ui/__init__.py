"""The desktop application; Qt lives here and nowhere else."""

from trainwright.ui import overrides

overrides.make_safe()  # before any class of a widget is made
