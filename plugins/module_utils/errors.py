# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stable codes of error classes. No I/O.

Every class of errors that reaches a user has one code. Modules return it as ``error_code``. Programs print it
before the message, and ``vipu`` and ``vipu-admin`` in their JSON output. ``docs/reference/errors.md`` is
generated from this table. A code is never reused and never changes its meaning.
"""

from __future__ import annotations

import typing as t


class ErrorClass(t.NamedTuple):
    """One class of errors: what happened, and what to do when the message does not say it."""

    title: str
    cause: str
    remedy: str


# 1xx: tasks and the engine. 2xx: V-IPU client. 3xx: POD definition. 4xx: devices and hosts. 5xx: OpenStack.
# 6xx: controller and agent; 603 to 609 are 600 plus the gRPC status code. 7xx: command lines. 8xx: twin and tools.
# 9xx: Kubernetes.
ERRORS: dict[str, ErrorClass] = {
    "OPU100": ErrorClass(
        "Task failed",
        "An option is invalid, a requirement is missing, a check failed, or an object has the wrong state.",
        "Follow the message.",
    ),
    "OPU101": ErrorClass(
        "Plan rejected", "The desired objects contradict each other or the actual ones.", "Correct the named object."
    ),
    "OPU102": ErrorClass(
        "Objects not written", "Some objects were rejected; the others may have changed.", "See errors in the result."
    ),
    "OPU200": ErrorClass(
        "Call to the V-IPU controller failed",
        "The controller is not reachable, or rejected the call without a code of its own.",
        "Check host, port, TLS options and credentials.",
    ),
    "OPU300": ErrorClass(
        "Invalid POD definition", "pod.yml or machines.csv has an error.", "Correct the named file and line."
    ),
    "OPU400": ErrorClass(
        "Switch failed", "The switch is not reachable, or rejected the configuration.", "Check eAPI and credentials."
    ),
    "OPU401": ErrorClass(
        "PDU failed", "The PDU is not reachable, or rejected a value.", "Check SNMP version, user and keys."
    ),
    "OPU402": ErrorClass(
        "Command on a host failed", "A program on the host is missing or failed.", "Run the named command by hand."
    ),
    "OPU500": ErrorClass(
        "OpenStack request failed", "A service is not reachable, or rejected the request.", "Check cloud and role."
    ),
    "OPU603": ErrorClass("Invalid request", "A value or a combination of values is invalid.", "Follow the message."),
    "OPU605": ErrorClass(
        "Object not found",
        "The object does not exist, or belongs to another tenant.",
        "List the objects to find the ID.",
    ),
    "OPU606": ErrorClass("Object exists", "The ID is used by another object.", "Choose another ID."),
    "OPU607": ErrorClass(
        "Permission denied", "The user has no right to do this.", "Ask an administrator for the rights."
    ),
    "OPU608": ErrorClass(
        "Resources exhausted",
        "Too few suitable IPUs or IPU-Machines are free, or the request is too large.",
        "Request less, or remove objects that are no longer necessary.",
    ),
    "OPU609": ErrorClass(
        "State does not allow it",
        "Another object or operation blocks the request, or the object failed.",
        "Remove the named object, wait until the operation ends, or repair the cause. Then try again.",
    ),
    "OPU610": ErrorClass("Authentication failed", "User ID or access key is missing or wrong.", "Check both."),
    "OPU611": ErrorClass("Controller is stopping", "The controller accepts no new work.", "Try again later."),
    "OPU612": ErrorClass(
        "Database failed", "The database cannot be read or written.", "Check disk space; run vipu-server check."
    ),
    "OPU613": ErrorClass("Backup or restore failed", "The archive or a folder is unusable.", "Follow the message."),
    "OPU614": ErrorClass("TLS files unusable", "A certificate or key is missing or invalid.", "Renew the named file."),
    "OPU615": ErrorClass("Endpoint not available", "The address or port cannot be used.", "Free or change the port."),
    "OPU616": ErrorClass(
        "Controller does not serve", "The health check got no response in time.", "Start vipu-server, or see its log."
    ),
    "OPU617": ErrorClass("Hardware failed", "The IPU-Machine cannot do what was requested.", "See the agent's log."),
    "OPU618": ErrorClass("Internal error", "A defect of the program.", "Report it with the reference in the log."),
    "OPU619": ErrorClass("Invalid option", "An option of the program is invalid or unsafe.", "Follow the message."),
    "OPU620": ErrorClass(
        "System call failed",
        "The operating system denied access to a file or another resource.",
        "Check that it exists, its permissions and free disk space.",
    ),
    "OPU621": ErrorClass(
        "Revision compacted",
        "The changes after the revision are no longer stored, or the database was replaced.",
        "List again: watch without a revision.",
    ),
    "OPU622": ErrorClass("Request incomplete", "The request did not arrive in time.", "Send it again at once."),
    "OPU623": ErrorClass(
        "Restore not confirmed",
        "Partitions would lose their records in a restore.",
        "Check the named partitions, then pass --yes.",
    ),
    "OPU624": ErrorClass(
        "Controller does not lead",
        "Another controller leads, or none at present. Nothing was changed.",
        "Call the leader, or try again in a few seconds.",
    ),
    "OPU625": ErrorClass(
        "Leader changed during a call",
        "Another controller leads now. The change may or may not have been made.",
        "Read the object again before you repeat a change.",
    ),
    "OPU630": ErrorClass(
        "Owner of the agent unusable", "The owner of an agent cannot be read or stored.", "Follow the message."
    ),
    "OPU700": ErrorClass(
        "Invalid configuration of a command-line program", "A configuration file or flag is invalid.", "Correct it."
    ),
    "OPU701": ErrorClass("Command failed", "The command failed on the client's side.", "Follow the message."),
    "OPU800": ErrorClass(
        "Command for the twin failed",
        "No twin runs, its folder or an address is in use, or the POD is not on loopback.",
        "Follow the message.",
    ),
    "OPU801": ErrorClass("Invalid fault", "The fault does not exist or does not fit.", "Run twin fault --help."),
    "OPU802": ErrorClass("Invalid cabling of the twin", "A port does not exist or is in use.", "Name another port."),
    "OPU804": ErrorClass(
        "Rehearsal failed", "The rehearsal of a POD could not run to its end.", "Follow the message and the named log."
    ),
    "OPU803": ErrorClass(
        "Background process failed", "A process did not start, or its port is in use.", "See the named log."
    ),
    "OPU900": ErrorClass(
        "Request to Kubernetes failed",
        "The API server is not reachable, or rejected the request.",
        "Check the API server, and the roles of the service account.",
    ),
    "OPU901": ErrorClass(
        "Tracker unusable", "The records of partitions cannot be read or written.", "Follow the message."
    ),
    "OPU902": ErrorClass(
        "V-IPU proxy failed", "The proxy is not reachable, or rejected the request.", "See the log of gc-proxy."
    ),
}
