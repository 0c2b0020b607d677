"""`./chorus bench`: how fast the service is, each number beside a reference that was measured in the same run.

Nothing of the service imports this package; it may use whatever `./chorus test` installs.
"""
