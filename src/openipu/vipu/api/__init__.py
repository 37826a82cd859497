# SPDX-License-Identifier: GPL-3.0-or-later
"""gRPC APIs of the controller: endpoints, authentication, messages.

``endpoints.Endpoints`` creates the servers, whose handlers can be replaced: ``services.Services`` serves calls, and
``standby`` rejects those to a follower. ``guard.RequestGuard`` wraps every call: it authenticates the caller,
rejects non-administrators in ``AdminService``, and selects a handler of ``calls``. The handler converts exceptions to
a gRPC status with one message. ``methods`` records metrics and logs. ``admission`` limits calls and threads by group
of callers, and ``exchange`` the time for messages. ``Context.may_use`` in ``domain`` checks whether a caller may use
an allocation.
``public`` has Graphcore's API, ``tenant`` and ``admin`` the APIs of this project. ``convert`` maps messages to records.
``watch.Watches`` serves all streams of changes in one thread.

Rules:

* Services contain no rules of their own. They submit commands with the functions of ``domain.rules``.
* ``public`` never changes its contract (``proto/virmgrpc``).
* A call is authenticated and admitted before its request is read, and counted until its client has the reply.
* Only administrators may call ``AdminService``. A caller receives NOT_FOUND for allocations that it may not use.
* Mark a method that waits for IPU-Machines with ``methods.waits_for_agents``, so that it runs in its own thread pool.
* Methods whose names begin with Get, List or Count are read-only.
"""
