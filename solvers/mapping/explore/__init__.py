"""The best machine of a design space, proven: ``docs/explore.md`` shows why every rule is sound."""
