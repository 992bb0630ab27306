"""One training run of a graph task: the data as batches, the network, the epochs, what is written down."""
