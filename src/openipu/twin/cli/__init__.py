# SPDX-License-Identifier: GPL-3.0-or-later
"""Command line of the program ``twin``: start, inspect, break and stop a rack twin.

``main`` has the commands; ``launch.Twin`` does their work. ``summary`` reads the objects of the controller.
"""
