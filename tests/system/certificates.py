"""Certificates, made by the openssl program as an administrator would make them."""
from harness import run


def _openssl(*arguments):
    done = run("openssl", *arguments)
    assert done.returncode == 0, f"openssl {' '.join(map(str, arguments))}:\n{done.stderr}"


class Authority:
    """Signs certificates; the files of each are NAME.crt and NAME.key in the folder."""

    def __init__(self, folder, name="ca"):
        self.folder, self.name = folder, name
        self.crt, self.key = folder / f"{name}.crt", folder / f"{name}.key"
        _openssl("req", "-x509", *self._new_key(self.key), "-out", self.crt, "-days", "30", "-subj", f"/CN={name}")

    @staticmethod
    def _new_key(path, kind="ec"):
        return ["-newkey", *(["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "ec" else [kind]), "-nodes", "-keyout", path]

    def sign(self, name, subject=None, days=30, kind="ec", extensions="subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"):
        """Returns the paths of certificate and key. Negative days: it has expired."""
        crt, key, request, more = (self.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr", "ext"))
        more.write_text(extensions + "\n")
        _openssl("req", *self._new_key(key, kind), "-out", request, "-subj", subject or f"/CN={name}")
        key.chmod(0o600)
        if days > 0:
            _openssl("x509", "-req", "-in", request, "-CA", self.crt, "-CAkey", self.key, "-CAcreateserial", "-out", crt, "-extfile", more, "-days", days)
        else:
            self._sign_expired(request, crt, more)
        return crt, key

    def _sign_expired(self, request, crt, more):
        """Only `openssl ca` of this version takes dates."""
        base = self.folder / f"{self.name}-expired"
        base.mkdir(exist_ok=True)
        (base / "index").write_text("")
        (base / "serial").write_text("1000\n")
        (base / "conf").write_text(f"[ca]\ndefault_ca=a\n[a]\ndatabase={base}/index\nserial={base}/serial\nnew_certs_dir={base}\ndefault_md=sha256\npolicy=p\n"
                                   "[p]\ncommonName=supplied\n")
        _openssl("ca", "-batch", "-config", base / "conf", "-in", request, "-cert", self.crt, "-keyfile", self.key, "-out", crt, "-extfile", more,
                 "-startdate", "20200101000000Z", "-enddate", "20200201000000Z", "-notext")
