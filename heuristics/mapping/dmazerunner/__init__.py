"""dMazeRunner's search (Dave et al., ACM TECS 18(5s), 2019, section 4.2)."""
