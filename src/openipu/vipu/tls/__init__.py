# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificates for mutual TLS: issue, renew and check them.

``issue.create`` makes an authority and the certificates of server and clients. ``renew`` replaces them before they
expire, with the same keys. ``load`` reads files and makes credentials; ``check`` tests them with a handshake in memory.

Rules:

* Servers use replaced files from the next connection on, without a restart.
* Import ``cryptography`` inside functions, so that a controller without TLS does not load it.
* Errors are ``load.TlsError`` with a message for users.
"""
