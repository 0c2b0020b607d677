"""Fixtures that every folder of tests can use. The servers behind them are started by `tests.embedded`."""
