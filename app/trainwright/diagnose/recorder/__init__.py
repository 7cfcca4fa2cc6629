"""What times a run from inside its process: the standard library only, copied as one folder."""
