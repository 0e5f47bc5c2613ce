"""Command lines of serving engines: written from a plan, and read into the arguments of one."""
