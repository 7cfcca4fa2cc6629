"""One module a screen; each is a view of the session."""
