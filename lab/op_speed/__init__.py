"""How long single ops take on a GPU in each precision: what the forecast of mixed precision is calibrated with."""
