"""What the clouds say before they take a machine away, from their metadata services. Test endpoints come from
AWS_EC2_METADATA_SERVICE_ENDPOINT, GCE_METADATA_HOST and MAYFLY_AZURE_METADATA_ENDPOINT."""
import datetime
import email.utils
import json
import os
import threading
import urllib.error
import urllib.parse
import urllib.request

CLOUDS = ("aws", "gcp", "azure")
POLL_S = {"aws": 5.0, "gcp": 1.0, "azure": 1.0}
_LEFT_S = {"aws": 120.0, "gcp": 30.0, "azure": 30.0}  # where the service says no time
_ANSWER_S = 2.0


def endpoint_of(cloud, environment=os.environ):
    if cloud == "aws":
        return environment.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://169.254.169.254")
    if cloud == "gcp":
        host = environment.get("GCE_METADATA_HOST", "metadata.google.internal")
        return host if host.startswith("http://") else "http://" + host
    return environment.get("MAYFLY_AZURE_METADATA_ENDPOINT", "http://169.254.169.254")


def _answer(url, headers, method="GET"):
    """The text, or None where there is nothing (404)."""
    request = urllib.request.Request(url, headers=headers, method=method)
    try:
        # The machine's own metadata are never behind a proxy.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=_ANSWER_S) as answer:
            return answer.read(1 << 20).decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:
            return None
        raise


def aws_left_s(text, now):
    """Of spot/instance-action."""
    action = json.loads(text)
    if not isinstance(action, dict) or action.get("action") not in ("terminate", "stop", "hibernate"):
        return None
    try:
        when = datetime.datetime.strptime(str(action.get("time")), "%Y-%m-%dT%H:%M:%SZ")
    except ValueError:
        return _LEFT_S["aws"]
    return max(0.0, when.replace(tzinfo=datetime.timezone.utc).timestamp() - now)


def gcp_left_s(text, now):
    """Of instance/preempted."""
    return _LEFT_S["gcp"] if text.strip().upper() == "TRUE" else None


def azure_left_s(text, now, machine):
    """Of scheduledevents; those of other machines of a set do not count."""
    lefts = []
    document = json.loads(text)
    for event in document.get("Events", []) if isinstance(document, dict) else []:
        if not isinstance(event, dict) or event.get("EventType") not in ("Preempt", "Terminate"):
            continue
        if machine not in event.get("Resources", []):
            continue
        try:
            lefts.append(max(0.0, email.utils.parsedate_to_datetime(event["NotBefore"]).timestamp() - now))
        except (KeyError, TypeError, ValueError, IndexError):
            lefts.append(_LEFT_S["azure"])
    return min(lefts) if lefts else None


def look(cloud, endpoint, now):
    """Seconds left, or None. An OSError or ValueError where the service does not answer, or not as it should."""
    base = endpoint.rstrip("/")
    if cloud == "aws":
        token = _answer(base + "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"}, "PUT")
        if not token:
            raise ValueError("it gives no session token")
        text = _answer(base + "/latest/meta-data/spot/instance-action", {"X-aws-ec2-metadata-token": token})
        return None if text is None else aws_left_s(text, now)
    if cloud == "gcp":
        text = _answer(base + "/computeMetadata/v1/instance/preempted", {"Metadata-Flavor": "Google"})
        return None if text is None else gcp_left_s(text, now)
    machine = _answer(base + "/metadata/instance/compute/name?api-version=2021-02-01&format=text", {"Metadata": "true"})
    if machine is None:
        raise ValueError("it does not say how this machine is called")
    text = _answer(base + "/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"})
    return None if text is None else azure_left_s(text, now, machine.strip())


def on_loopback(endpoint):
    """Where a controller may send a worker to ask; anywhere else it could make it talk to whomever it likes."""
    host = urllib.parse.urlsplit(endpoint).hostname or ""
    return host in ("localhost", "::1") or host.startswith("127.")


class Watch:
    """Asks a metadata service again and again, in a thread, until it has told of the end or there is another watch."""

    def __init__(self, cloud, endpoint, told, log):
        self._cloud, self._endpoint, self._told, self._log = cloud, endpoint, told, log
        self._over = threading.Event()
        threading.Thread(target=self._run, name="mayfly-notices", daemon=True).start()

    def end(self):
        self._over.set()

    def _run(self):
        silent = False
        while not self._over.is_set():
            try:
                left_s = look(self._cloud, self._endpoint, datetime.datetime.now(datetime.timezone.utc).timestamp())
                silent = False
            except (OSError, ValueError) as error:
                left_s = None
                if not silent:
                    self._log("%s: no word of notices: %s" % (self._endpoint, error))
                silent = True
            if left_s is not None:
                self._told(left_s)
                return
            self._over.wait(POLL_S[self._cloud])
