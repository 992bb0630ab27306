"""What a person looks at: the board in the terminal, the page in the browser, the paper's figures."""
