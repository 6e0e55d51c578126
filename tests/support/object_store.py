"""An S3 server of this machine, for what reads and writes object storage."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def empty_bucket(name: str) -> Iterator[str]:
    """The address of an empty bucket, s3://name. The environment leads s3fs of this process and its children to it."""
    server_module = pytest.importorskip("moto.server")
    s3fs = pytest.importorskip("s3fs")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
        for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            environment.setenv(variable, "testing")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        s3fs.S3FileSystem.clear_instance_cache()
        try:
            s3fs.S3FileSystem(use_listings_cache=False).mkdir(name)
            yield f"s3://{name}"
        finally:
            s3fs.S3FileSystem.clear_instance_cache()
            server.stop()
