"""Whether a document tells the truth: every claim computed anew from the document itself."""
