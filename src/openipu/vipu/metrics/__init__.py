# SPDX-License-Identifier: GPL-3.0-or-later
"""Metrics of controllers and agents, for Prometheus.

* ``catalog`` declares every metric: name, type, labels, help and buckets. There are no metrics elsewhere, except
  those of the process, which come from the client library.
* ``meters.Meters`` makes the counters and histograms of events. ``meters.Samples`` collects values that are read at
  a scrape, as in ``server.metrics`` and ``agent.metrics``.
* ``address.MetricsAddress`` is the address of an endpoint, and its URL.
* ``exporter.Exporter`` serves ``/metrics`` over HTTP, or over HTTPS with ``https.Https``.
* ``options`` has the command-line options.

Rules:

* Names begin with ``vipu_`` (controller) or ``ipum_`` (agent). Counters end with ``_total``, constant information
  with ``_info``, and values with their unit, such as ``_seconds``.
* Names and labels are an interface for dashboards and alerts. Do not rename them.
* ``python tools/metrics.py`` writes the tables of docs/reference/metrics.md; a unit test fails when they are stale.
* Each request has its own thread, with a limit on concurrent requests. A collector must not block the program.
"""
