"""The paper's comparison of position encodings on graph tasks: protocol, cells, training, results."""
