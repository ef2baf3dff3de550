# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# An mpi4py program: Python objects, whose lengths ranks tell each other, and plain buffers.
from array import array

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.rank, world.size
right = world.bcast({"from": rank} if rank == 0 else None) == {"from": 0}
right &= world.allreduce(rank) == size * (size - 1) // 2
right &= world.allgather("x" * rank) == ["x" * r for r in range(size)]
right &= world.alltoall([rank * 100 + r for r in range(size)]) == [r * 100 + rank for r in range(size)]
right &= world.scan(1) == rank + 1
gathered = world.gather(bytes(rank * 1000), root=size - 1)
right &= rank != size - 1 or [len(g) for g in gathered] == [1000 * r for r in range(size)]

mine, total = array("d", [rank + 0.5] * 1000), array("d", [0.0] * 1000)
world.Allreduce(mine, total)
right &= total[999] == sum(r + 0.5 for r in range(size))
request = world.Iallreduce(MPI.IN_PLACE, mine, op=MPI.MAX)
request.Wait()
right &= mine[0] == size - 0.5

half = world.Split(rank % 2, rank)
right &= half.allreduce(1) == (size + 1 - rank % 2) // 2
half.Free()
cart = world.Create_cart([size], periods=[True])
right &= cart.allreduce(rank, op=MPI.MAX) == size - 1
cart.Free()
if world.allreduce(right, op=MPI.LAND) and rank == 0:
    print("right")
