"""The machine: catalog ids and probed readings become one value."""
