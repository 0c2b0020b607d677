"""One bench a file: `run(quick)` gives its lines. The names are those of the modules, a hyphen for an underscore."""
