"""The desktop application; Qt lives here and nowhere else."""
