"""Whether a document is correct: every claim computed again from the document itself."""
