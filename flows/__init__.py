"""When and in what order: the Prefect flows and the command line."""
