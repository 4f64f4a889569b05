"""The evaluations of five papers, repeated figure by figure: a package per paper, a module per figure."""
