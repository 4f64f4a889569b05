"""Resource allocation trees (SET, Cai et al., ISCA 2023): what they are, and what they cost."""
