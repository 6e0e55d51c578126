"""Forecasts of DataLoader workers against measured steps, planted causes, equal batches and the hook's cost."""
