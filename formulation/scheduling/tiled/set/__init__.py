"""Resource allocation trees (SET, Cai et al., ISCA 2023): what they are, what they cost, what plan they mean."""
