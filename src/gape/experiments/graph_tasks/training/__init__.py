"""Training of one cell: batches of encoded graphs, the network, the epochs, and the files that are written."""
