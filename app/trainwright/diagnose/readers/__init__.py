"""Evidence in files that other programs wrote: ``files.FORMATS`` is the table of readers."""
