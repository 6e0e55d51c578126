"""A DataLoader, by what the hook measured of each batch (`model.profile.LoaderBatches`)."""
