"""What speaks for a new model and against it: figures with intervals, tests, monitors, objections, scripted cheats."""
