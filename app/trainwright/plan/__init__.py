"""The document: schema, file, history, and its evaluation."""
