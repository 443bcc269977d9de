"""`python -m dispatcher`: the command line."""

from dispatcher.cli import main

if __name__ == "__main__":
    main()
