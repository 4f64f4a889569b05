"""Systems of several engines: graphs of layers run on them, one room per kind."""
