"""What `./chorus admin …` can do: the panel's operations as commands, for scripts."""
