# SPDX-License-Identifier: GPL-3.0-or-later
"""Panel *IPUs* of Horizon: vPODs, partitions and rack report of a tenant, orders, and all tenants for operators.

Entry points: ``enabled`` has the files that Horizon reads, and ``panels`` the Django views behind them.

Rules:

* The project comes from the token of the user, never from a form. ``ownership`` derives all objects of a tenant from
  the records in its project, which Keystone returns to this token. Tenants cannot change these records.
* A request reads the controller with the credentials of the project of its token. So a secure controller separates the
  tenants too.
* The web server runs no playbooks. ``awx`` launches templates of an AWX.
* ``settings``, ``ownership`` and ``orders`` are rules without I/O and without Django.

The name is not ``horizon``, because Django accepts one application of that name only.
"""
