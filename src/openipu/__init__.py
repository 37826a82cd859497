# SPDX-License-Identifier: GPL-3.0-or-later
"""An open V-IPU control plane for Graphcore IPU-PODs, and a rack twin to rehearse with."""
