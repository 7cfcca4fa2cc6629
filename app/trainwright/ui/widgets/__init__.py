"""The kit: painted controls that keep their Qt base class, for keys and screen readers."""
