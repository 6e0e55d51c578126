"""What stands between the views and HTTP: stored profiles by run, request parameters, responses, bundle files."""
