#!/bin/sh
# Creates a signed repository with a stand-in for the Grafana package: grafana-repository.sh FOLDER
set -eu
here=$(dirname "$0")
arch=$(dpkg --print-architecture)
index=main/binary-$arch/Packages
rm -rf "$1"
mkdir -p "$1/package/DEBIAN" "$1/package/usr/sbin" "$1/package/usr/lib/systemd/system" "$1/repository/dists/stable/main/binary-$arch"
cp "$here/grafana_server.py" "$1/package/usr/sbin/grafana-server"
chmod 0755 "$1/package/usr/sbin/grafana-server"
mkdir -p "$1/package/etc/grafana/provisioning/datasources" "$1/package/etc/grafana/provisioning/dashboards"
cat >"$1/package/DEBIAN/control" <<END
Package: grafana
Version: 1.0
Architecture: all
Maintainer: tests <tests@example.com>
Description: a stand-in
END
cat >"$1/package/DEBIAN/postinst" <<END
#!/bin/sh
useradd --system --shell /usr/sbin/nologin grafana
END
chmod 0755 "$1/package/DEBIAN/postinst"
cat >"$1/package/usr/lib/systemd/system/grafana-server.service" <<END
[Service]
User=grafana
ExecStart=/usr/bin/python3 /usr/sbin/grafana-server
[Install]
WantedBy=multi-user.target
END
dpkg-deb --root-owner-group --build "$1/package" "$1/repository/grafana.deb" >/dev/null
rm -r "$1/package"
cd "$1/repository"
dpkg-deb --field grafana.deb >"dists/stable/$index"
printf 'Filename: grafana.deb\nSize: %s\nSHA256: %s\n' "$(stat -c %s grafana.deb)" "$(sha256sum grafana.deb | cut -d' ' -f1)" >>"dists/stable/$index"
cd dists/stable
printf 'Suite: stable\nArchitectures: %s\nComponents: main\nDate: %s\nSHA256:\n %s %s %s\n' "$arch" "$(date -Ru)" \
    "$(sha256sum "$index" | cut -d' ' -f1)" "$(stat -c %s "$index")" "$index" >Release
export GNUPGHOME="$1/keys"
mkdir -m 0700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key tests@example.com ed25519 sign never
gpg --batch --quiet --clearsign --output InRelease Release
gpg --batch --quiet --armor --export >"$1/key.asc"
gpgconf --kill all
