"""One rank's training. Hardware, strategy and precision are separate seams; `trainer.py` is the only file that knows them all."""
