# SPDX-License-Identifier: GPL-3.0-or-later
"""Cluster tests: cables, links, traffic, versions and settings of the IPU-Machines of a cluster.

``runs.Runs`` is the entry point; ``lifecycle.service.LifecycleService`` creates it in its event loop.

* Selection: ``selection.select_tests`` puts the requested tests into their order. ``selection.skip_verdict`` skips a
  test when a test that it depends on failed, or when it would disturb partitions. A test that is requested alone
  always runs.
* Run: ``Runs.start`` checks and reserves a run in the writer thread, and starts it after the commit.
  ``execute.TestExecutor`` calls the agents concurrently, one test at a time. A machine that does not respond gives
  the reading ``Unreachable``; it does not end the test.
* Evaluation: ``cable_verdicts``, ``link_verdicts`` and ``machine_verdicts`` map a cluster and its readings to a
  ``model.Verdict``. They are pure.

Rules:

* Names, numbers, order and flags of the tests are in ``openipu.shared.vipu.cluster_test.table``. A new test also needs
  a member of ``model.Test``, a method of ``TestExecutor`` and a value in the admin API. Its help text is in
  ``cli.cluster_tests``, and the documentation of the module ``vipu_cluster_test`` lists it.
* One run at a time. During a run, the rules of ``domain`` reject changes of the cluster.
* Runs are in memory only: the last run, and the results of each cluster (``results``). A restart drops them.
* ``Verdict.lines`` has the format of Graphcore's administrator guide, which programs parse.
"""
