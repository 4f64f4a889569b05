"""The second opinion on fused mappings: columns of layers, and a model that picks some which agree."""
