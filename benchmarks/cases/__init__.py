"""One module a case: its docstring says what it measures, ROWS and SMOKE_ROWS how much, `run(setup)` gives the record."""
