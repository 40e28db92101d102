"""What passes between a worker and its parts."""
import collections

# A step whose gradients are summed and whose word is awaited.
Pending = collections.namedtuple("Pending", "first samples step alone done")
# Samples to compute: the batch that the script is given next.
Lease = collections.namedtuple("Lease", "formation first count share message")


class Unable(Exception):
    """It cannot do what it was told, for good."""
