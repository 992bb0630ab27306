"""What a person looks at: the board in the terminal, the page in the browser, tables drawn, the paper's figures."""
