"""Who can reach a sweep's cluster: the loopback interface alone, no dashboard, and TLS where it is asked for."""

import gc
import urllib.error
import urllib.request

import pytest

import processes
from hockeystick.cli import main
from hockeystick.sweep import ClusterError, run
from sweep_plans import content, written

pytest.importorskip("pyarrow")
pytest.importorskip("cryptography", reason="makes the certificates")
psutil = pytest.importorskip("psutil")
distributed = pytest.importorskip("distributed")

from hockeystick.sweep import cluster

pytestmark = pytest.mark.slow

PLAN = {"shard_rows": 2, "outputs": {"delta": "theta"}, "axes": {"epsilon": [0.0, 1.0, 2.0], "r": [0.5, 1.5]}}
PAGES = ("status", "info/main/workers.html", "info/logs.html", "json/counts.json", "individual-task-stream")


def listening():
    """Return where this process and its children listen."""
    own = psutil.Process()
    found = set()
    for process in [own, *own.children(recursive=True)]:
        found |= {(*c.laddr,) for c in process.net_connections("inet") if c.status == psutil.CONN_LISTEN}
    return found


def answers(port, page):
    """Say whether a page is there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=processes.seconds(5)):
            return True
    except (OSError, urllib.error.HTTPError):
        return False


def test_local_workers_listen_on_the_loopback_interface():
    """Workers of this machine are reached from this machine alone, and there is no page about them."""
    before = listening()
    with cluster.local(1) as client:
        added = listening() - before
        assert added
        assert {address for address, _ in added} == {"127.0.0.1"}
        assert answers(client.cluster.scheduler.http_server.port, "health")
        assert not [page for page in PAGES if answers(client.cluster.scheduler.http_server.port, page)]


def test_dashboard_where_it_is_asked_for():
    """The dashboard opens at the port that was asked for, on the loopback interface."""
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address="127.0.0.1:0") as made:
        free = int(made.scheduler.http_server.port)  # free again in a moment
    with cluster.local(1, dashboard_port=free):
        assert ("127.0.0.1", free) in listening()
        assert {address for address, port in listening() if port == free} == {"127.0.0.1"}
        assert answers(free, "info/main/workers.html")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """Return the files of an authority, a certificate and its key."""
    folder = tmp_path_factory.mktemp("certificates")
    made = distributed.Security.temporary()
    files = {"ca-file": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    for name, text in files.items():
        (folder / f"{name}.pem").write_text(text)
    return {name: folder / f"{name}.pem" for name in files}


@pytest.fixture(scope="module")
def secured(certificates):
    """Give a cluster that talks TLS only."""
    security = cluster.tls(*map(str, certificates.values()))
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tls://", security=security, dashboard_address=":0"
    ) as made:
        yield made


def test_tls_to_a_scheduler(tmp_path, secured, certificates):
    """The command computes on a cluster that talks TLS only; without certificates it is refused."""
    command = ["sweep", "run", str(written(PLAN, tmp_path)), "--scheduler", secured.scheduler_address, "--quiet"]
    options = [word for name, file in certificates.items() for word in (f"--tls-{name}", str(file))]
    assert secured.scheduler_address.startswith("tls://127.0.0.1:")
    assert main([*command, "-o", str(tmp_path / "out"), *options]) == 0
    run(PLAN, tmp_path / "here")
    assert content(tmp_path / "out") == content(tmp_path / "here")
    assert main([*command, "-o", str(tmp_path / "none")]) == 1
    assert not (tmp_path / "none").exists()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see `collected`
def test_tls_refuses_a_plain_scheduler(certificates):
    """Whoever asks for TLS never talks to a scheduler without it, and the other way round; each is told at once."""
    security = cluster.tls(*map(str, certificates.values()))
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0", protocol="tcp://") as plain:
        address = plain.scheduler_address
        with pytest.raises(ClusterError, match=rf"not {address}: .*encryption"):
            cluster.connected(address, security).__enter__()
        address = address.replace("tcp://", "tls://")
        with pytest.raises(ClusterError, match=rf"scheduler must be the address of a Dask scheduler, not {address}: "):
            cluster.connected(address, security).__enter__()
    collected()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # see `collected`
def test_plain_client_of_a_tls_scheduler(secured):
    """A client without certificates is refused at once, with either address."""
    for address in (secured.scheduler_address, secured.scheduler_address.replace("tls://", "tcp://")):
        with pytest.raises(ClusterError, match=rf"scheduler must be the address of a Dask scheduler, not {address}: "):
            cluster.connected(address).__enter__()
    collected()


def collected():
    """Let the socket of a failed handshake, which tornado leaves open, be collected in the test that made it."""
    gc.collect()


def test_tls_between_local_workers(certificates):
    """Workers of this machine talk TLS with the same three files."""
    with cluster.local(1, cluster.tls(*map(str, certificates.values()))) as client:
        assert client.scheduler.address.startswith("tls://127.0.0.1:")
        assert client.submit(abs, -3).result(timeout=processes.seconds(60)) == 3
