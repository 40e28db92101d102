"""An S3 server on this computer that refuses what S3 refuses, for as long as a test takes: Ceph's radosgw over one monitor and
one store in memory, its own keys, its own ports on loopback, nothing outside one folder. Every daemon is a child of the test,
and ends with it. Besides, a client that shares nothing with mayfly's."""
import ctypes
import datetime
import hashlib
import hmac
import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import uuid
import xml.etree.ElementTree

WAIT_S = 180  # only ends a hang
PROGRAMS = ("ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "ceph", "monmaptool", "ceph-authtool")
PR_SET_PDEATHSIG = 1
KEY, SECRET, REGION = "AKID", "SECRET", "us-east-1"

CONFIG = """[global]
fsid = {fsid}
mon initial members = a
mon host = [v2:127.0.0.1:{v2},v1:127.0.0.1:{v1}]
mon warn on insecure global id reclaim = false
mon warn on insecure global id reclaim allowed = false
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
osd crush chooseleaf type = 0
osd objectstore = memstore
memstore device bytes = {memory}
ms bind ipv6 = false
public addr = 127.0.0.1
cluster addr = 127.0.0.1
log file = {folder}/log/$name.log
pid file = {folder}/run/$name.pid
admin socket = {folder}/run/$name.asok
run dir = {folder}/run
mon data = {folder}/mon
osd data = {folder}/osd
rgw data = {folder}/rgw
keyring = {folder}/keyring
mon max pg per osd = 1000
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw rados pool pg num min = 1
rgw thread pool size = 16
debug rgw = 0
"""


def path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def missing():
    """The programs that are not on this computer."""
    return [program for program in PROGRAMS if not shutil.which(program, path=path())]


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_ports(count):
    """So many in a row that nobody listens on now, elsewhere than another test that begins in the same moment."""
    for first in range(31000 + os.getpid() % 3500 * 8, 60000, 8):
        try:
            for port in range(first, first + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
            return first
        except OSError:
            continue
    raise RuntimeError("no free ports")


class Radosgw:
    def __init__(self, folder, memory=2 << 30):
        self.folder, self.daemons = folder, {}
        for name in ("mon", "osd", "log", "run", "rgw"):
            os.makedirs(f"{folder}/{name}", exist_ok=True)
        first = free_ports(3)
        self.port = first + 2
        self.fsid = str(uuid.uuid4())
        self.environment = {**os.environ, "PATH": path(), "CEPH_CONF": f"{folder}/ceph.conf"}
        with open(f"{folder}/ceph.conf", "w", encoding="utf-8") as file:
            file.write(CONFIG.format(fsid=self.fsid, v2=first, v1=first + 1, port=self.port, folder=folder, memory=memory))
        self.monitors = f"[v2:127.0.0.1:{first},v1:127.0.0.1:{first + 1}]"
        self.endpoint = f"http://127.0.0.1:{self.port}"

    def start(self):
        folder = self.folder
        keyring = f"{folder}/keyring"
        self.call("monmaptool", "--create", "--addv", "a", self.monitors, "--fsid", self.fsid, f"{folder}/monmap")
        self.call("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        for name, caps in (("client.admin", ("mon", "osd", "mgr", "mds")), ("client.rgw", ("mon", "osd"))):
            words = [word for cap in caps for word in ("--cap", cap, "allow *")]
            self.call("ceph-authtool", keyring, "--gen-key", "-n", name, *words)
        self.call("ceph-authtool", keyring, "--gen-key", "-n", "osd.0", "--cap", "mon", "allow profile osd", "--cap", "osd",
                  "allow *")
        shutil.copy(keyring, f"{folder}/keyring.mon")
        self.call("ceph-mon", "--mkfs", "-i", "a", "--monmap", f"{folder}/monmap", "--keyring", f"{folder}/keyring.mon")
        self.run("mon", "ceph-mon", "-f", "-i", "a")
        osd = str(uuid.uuid4())
        self.call("ceph", "osd", "new", osd)
        self.call("ceph-osd", "-i", "0", "--mkfs", "--osd-uuid", osd)
        self.run("osd", "ceph-osd", "-f", "-i", "0")
        self.wait("the object store", lambda: "1 up" in self.call("ceph", "osd", "stat", check=False))
        self.start_gateway()
        self.call("radosgw-admin", "user", "create", "--uid=u", "--display-name=u", f"--access-key={KEY}",
                  f"--secret-key={SECRET}")

    def start_gateway(self):
        self.run("rgw", "radosgw", "-f", "-n", "client.rgw")
        self.wait("the gateway", self.answers)

    def kill_gateway(self):
        """As if its power had been cut; what it has said to be stored is."""
        self.daemons["rgw"].kill()
        self.daemons.pop("rgw").wait(WAIT_S)

    def add_user(self, name, key, secret):
        self.call("radosgw-admin", "user", "create", f"--uid={name}", f"--display-name={name}", f"--access-key={key}",
                  f"--secret-key={secret}")

    def answers(self):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            connection.request("GET", "/")
            return connection.getresponse().status < 500
        except (OSError, http.client.HTTPException):
            return False

    def run(self, name, *words):
        with open(f"{self.folder}/log/{name}.out", "ab") as out:
            self.daemons[name] = subprocess.Popen([*words, "-c", f"{self.folder}/ceph.conf"], env=self.environment,
                                                  stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                                  preexec_fn=end_with_parent, start_new_session=True)

    def call(self, *words, check=True):
        words = list(words) + (["-c", f"{self.folder}/ceph.conf"] if words[0] not in ("monmaptool", "ceph-authtool") else [])
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=WAIT_S, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
        return done.stdout

    def wait(self, what, predicate):
        end = time.monotonic() + WAIT_S
        while not predicate():
            for name, daemon in self.daemons.items():
                if daemon.poll() is not None:
                    raise RuntimeError(f"{name} has ended: see {self.folder}/log")
            if time.monotonic() > end:
                raise RuntimeError(f"waited {WAIT_S} s for {what}: see {self.folder}/log")
            time.sleep(0.1)

    def stop(self):
        for name in reversed(list(self.daemons)):
            if self.daemons[name].poll() is None:
                self.daemons[name].kill()
            self.daemons[name].wait(WAIT_S)
        self.daemons.clear()

    # What is in it.

    def ask(self, method, path, query=None, body=b"", headers=None):
        """(status, headers, body) of one signed request."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        host = f"127.0.0.1:{self.port}"
        digest = hashlib.sha256(body).hexdigest()
        path = urllib.parse.quote(path, safe="/-._~")
        words = "&".join(f"{urllib.parse.quote(key, safe='-._~')}={urllib.parse.quote(value, safe='-._~')}"
                         for key, value in sorted((query or {}).items()))
        request = f"{method}\n{path}\n{words}\nhost:{host}\nx-amz-content-sha256:{digest}\nx-amz-date:{now}\n\n" \
                  f"host;x-amz-content-sha256;x-amz-date\n{digest}"
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = f"AWS4{SECRET}".encode()
        for part in (now[:8], REGION, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        connection.request(method, path + ("?" + words if words else ""), body=body, headers={
            "Host": host, "x-amz-content-sha256": digest, "x-amz-date": now,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, "
                             f"SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature={signature}", **(headers or {})})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()

    def good(self, *words, **named):
        status, _, body = self.ask(*words, **named)
        if status >= 300:
            raise RuntimeError(f"{words}: status {status}: {body[:300]}")
        return body

    def make_bucket(self, bucket):
        self.good("PUT", f"/{bucket}")

    def listing(self, bucket, prefix=""):
        """key -> bytes."""
        found, query = {}, {"list-type": "2", "prefix": prefix}
        while True:
            root = xml.etree.ElementTree.fromstring(self.good("GET", f"/{bucket}", query=query))
            space = root.tag[: root.tag.index("}") + 1]
            for entry in root.findall(f"{space}Contents"):
                found[entry.findtext(f"{space}Key")] = int(entry.findtext(f"{space}Size"))
            if root.findtext(f"{space}IsTruncated") != "true":
                return found
            query["continuation-token"] = root.findtext(f"{space}NextContinuationToken")

    def unfinished(self, bucket):
        root = xml.etree.ElementTree.fromstring(self.good("GET", f"/{bucket}", query={"uploads": ""}))
        space = root.tag[: root.tag.index("}") + 1]
        return [entry.findtext(f"{space}Key") for entry in root.findall(f"{space}Upload")]

    def begin_upload(self, bucket, key):
        """One that nobody will finish, with a part."""
        root = xml.etree.ElementTree.fromstring(self.good("POST", f"/{bucket}/{key}", query={"uploads": ""}))
        space = root.tag[: root.tag.index("}") + 1]
        upload = root.findtext(f"{space}UploadId")
        self.good("PUT", f"/{bucket}/{key}", query={"partNumber": "1", "uploadId": upload}, body=b"x" * 1000)

    def download(self, bucket, prefix, folder):
        """All below the prefix as files."""
        for key in self.listing(bucket, prefix):
            place = os.path.join(folder, key[len(prefix):].lstrip("/"))
            os.makedirs(os.path.dirname(place), exist_ok=True)
            with open(place, "wb") as file:
                file.write(self.good("GET", f"/{bucket}/{key}"))
