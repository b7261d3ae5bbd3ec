"""Who may ask a server that is for this machine alone."""

from train.host.showing.private_address import PrivateAddress, headers

ADDRESS = PrivateAddress(8000, token="secret")


def test_only_this_machine_with_the_token_is_answered():
    assert ADDRESS.url == "http://127.0.0.1:8000/secret/"
    for host in ("127.0.0.1:8000", "localhost:8000"):
        assert ADDRESS.refusal([host], "/secret/data") == ""
    for hosts in ([], ["evil.example"], ["127.0.0.1"], ["127.0.0.1:8001"], [*ADDRESS.hosts]):
        assert ADDRESS.refusal(hosts, "/secret/") == "wrong host\n"
    for path in ("/", "/secret", "/Secret/", "/secre/t", "/sécret/", ""):
        assert ADDRESS.refusal(["localhost:8000"], path).startswith("wrong address")


def test_tokens_are_long_and_new():
    tokens = {PrivateAddress().token for _ in range(20)}
    assert len(tokens) == 20
    assert all(len(token) >= 20 for token in tokens)


def test_pages_are_kept_nowhere():
    fields = headers("text/html", 12)
    assert (fields["Content-Length"], fields["Cache-Control"]) == ("12", "no-store")
