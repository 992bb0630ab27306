"""Tables of results in several formats, their plots, the paper's figures, and the HTML page of a comparison."""
