"""Certificates, made by the openssl program as an administrator would make them."""
import time

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
    def _new_key(path, kind="ec", curve="P-256"):
        return ["-newkey", *(["ec", "-pkeyopt", f"ec_paramgen_curve:{curve}"] if kind == "ec" else [kind]), "-nodes", "-keyout", path]

    def sign(self, name, subject=None, days=30, kind="ec", curve="P-256", end_s=None, extensions="subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1"):
        """Returns the paths of certificate and key. Negative days: it has expired. end_s: when it expires, seconds since 1970."""
        crt, key, request, more = (self.folder / f"{name}.{kind}" for kind in ("crt", "key", "csr", "ext"))
        more.write_text(extensions + "\n")
        _openssl("req", *self._new_key(key, kind, curve), "-out", request, "-utf8", "-subj", subject or f"/CN={name}")
        key.chmod(0o600)
        if end_s is not None:
            self._sign_until(request, crt, more, time.time() - 3600, end_s)
        elif days > 0:
            _openssl("x509", "-req", "-in", request, "-CA", self.crt, "-CAkey", self.key, "-CAcreateserial", "-out", crt, "-extfile", more, "-days", days)
        else:
            self._sign_until(request, crt, more, 1577836800, 1580515200)
        return crt, key

    def _sign_until(self, request, crt, more, start_s, end_s):
        """Only `openssl ca` of this version takes dates."""
        stamp = lambda moment_s: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(moment_s))
        base = self.folder / f"{self.name}-dated"
        base.mkdir(exist_ok=True)
        (base / "index").write_text("")
        (base / "serial").write_text("1000\n")
        (base / "conf").write_text(f"[ca]\ndefault_ca=a\n[a]\ndatabase={base}/index\nserial={base}/serial\nnew_certs_dir={base}\ndefault_md=sha256\npolicy=p\n"
                                   "[p]\ncommonName=supplied\n")
        _openssl("ca", "-batch", "-config", base / "conf", "-in", request, "-cert", self.crt, "-keyfile", self.key, "-out", crt, "-extfile", more,
                 "-startdate", stamp(start_s), "-enddate", stamp(end_s), "-notext")
