"""Every encoding on the same graphs: cost, promises, and what it tells apart."""
