# SPDX-License-Identifier: GPL-3.0-or-later
"""Program of the tests: each rank adds its number to a sum over all ranks, through the network of MPI."""

import ctypes
import os
import socket

mpi = ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)


def handle(name: str) -> ctypes.c_void_p:
    """Return a predefined handle of Open MPI."""
    return ctypes.c_void_p(ctypes.addressof(ctypes.c_byte.in_dll(mpi, name)))


mpi.MPI_Init(None, None)
rank, total = ctypes.c_int(), ctypes.c_int()
world = handle("ompi_mpi_comm_world")
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
number = ctypes.c_int(rank.value + 1)
mpi.MPI_Allreduce(
    ctypes.byref(number), ctypes.byref(total), 1, handle("ompi_mpi_int"), handle("ompi_mpi_op_sum"), world
)
shell = "ssh" if "SSH_CONNECTION" in os.environ else "exec"
partition = os.environ.get("IPUOF_VIPU_API_PARTITION_ID")
print(f"rank {rank.value} on {socket.gethostname()} by {shell}: sum {total.value}, {partition}", flush=True)
mpi.MPI_Finalize()
