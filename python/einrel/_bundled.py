"""What a wheel brings along, and what it takes from the system."""

import ctypes
import os
from pathlib import Path

_STARTED_BY = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")


def take_mpi_of_the_job() -> None:
    """Loads the system's MPI library in a process that mpirun started, before the package looks for one.

    A wheel brings the library, since ours needs it, but not what starts jobs. Those of one job have to be of one kind.
    """
    is_bundled = (Path(__file__).parent / "libs").is_dir()
    if not is_bundled or not any(name in os.environ for name in _STARTED_BY):
        return
    try:
        ctypes.CDLL("libmpi.so.40", mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        message = (
            "this process was started as one of several, and Open MPI, which they would speak through, is not there: "
            "install it (apt-get install openmpi-bin), or start Python without mpirun"
        )
        raise ImportError(message) from error
