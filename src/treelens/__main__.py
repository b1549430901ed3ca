"""``python -m treelens`` is the command ``treelens``."""

from treelens.cli.main import main

if __name__ == "__main__":
    main()
