"""A colony as a graph: features of nodes and edges, and what an agent sees."""
