"""The live path in a world that is made up: its time, its network, its crashes all come from one seed."""
