"""HTTP layer over the pages: stored profiles by run, request parameters, responses, bundle files."""
