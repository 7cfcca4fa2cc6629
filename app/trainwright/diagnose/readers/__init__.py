"""Evidence in files that other programs wrote: one module a format, each text -> ``Found``.

``files.FORMATS`` is the table of them; ``files.gather`` reads any number of files into one
``Evidence``.
"""
