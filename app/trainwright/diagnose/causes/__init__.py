"""The rules of each cause as data; ``table`` lists them all, cause by cause."""
