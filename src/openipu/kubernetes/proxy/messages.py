# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies of requests and answers, as the OpenAPI description of the proxy shows them."""

from __future__ import annotations

from pydantic import BaseModel, Field

from openipu.kubernetes.domain.job import MAX_IPUS


class Usage(BaseModel):
    """IPUs of a namespace, or of all namespaces."""

    used: int = Field(description="IPUs in partitions of jobs and pods")
    available: int = Field(description="free IPUs of all V-IPU controllers that respond")


class Query(BaseModel):
    """Question for partitions of a size."""

    size: int = Field(description="number of IPUs", examples=[2])


class Answer(BaseModel):
    """Answer to a query."""

    available: bool = Field(description="false if no V-IPU controller responds, or if no partition can have this size")
    numOfPartitions: int = Field(description="number of further partitions of this size")  # noqa: N815 - published
    message: str = Field(description="reason if available is false")


class Request(BaseModel):
    """Partition of an instance of a job."""

    uid: str = Field(min_length=1, max_length=64, description="UID of the job")
    size: int = Field(ge=1, le=MAX_IPUS, description="number of IPUs, a power of two")
    workers: int = Field(ge=1, le=MAX_IPUS, description="number of graph compilation domains")
    nodeSelector: dict[str, str] = Field({}, description="labels that the job demands of nodes")  # noqa: N815


class PodRequest(BaseModel):
    """Partition of a plain pod."""

    uid: str = Field(min_length=1, max_length=64, description="UID of the pod")
    size: int = Field(ge=1, le=MAX_IPUS, description="number of IPUs, a power of two")
    nodeLabels: dict[str, str] = Field(description="labels of the node of the pod")  # noqa: N815


class Label(BaseModel):
    """A label of nodes."""

    key: str
    value: str


class Controller(BaseModel):
    """A V-IPU controller of the list."""

    address: str
    nodeLabel: Label | None = Field(None, description="label of the nodes that reach its IPUs")  # noqa: N815


class IpuofConfig(BaseModel):
    """Configuration with which Poplar finds the IPUs of a partition."""

    partition: str = Field(description="id of the partition")
    config: str = Field(description="content of the file of IPUOF_CONFIG_PATH")


class Partition(BaseModel):
    """A reserved partition."""

    id: str
    size: int = Field(description="number of IPUs")
    host: str = Field(description="host of the V-IPU controller")
    port: int = Field(description="port of its user API")
    nodeLabel: Label | None = Field(None, description="label of the nodes that reach its IPUs")  # noqa: N815
    routing: str = Field("", description="IPU-Link routing: DNC, SWNC, BTNC or RINGSWNC; empty if it was not read")
    state: str = Field("", description="ACTIVE, PENDING, REMOVED or ERROR; empty if it was not read")
    errors: list[str] = []


class TrackedPartition(BaseModel):
    """A partition of a job or a pod with its owner and its last known state."""

    id: str
    kind: str
    namespace: str
    name: str
    uid: str
    instance: int
    size: int
    controller: str
    state: str = Field(description="ACTIVE, PENDING, REMOVED or ERROR; empty if the controller does not respond")


class Failure(BaseModel):
    """A rejected request."""

    reason: str = Field(description="one word", examples=["NoCapacity"])
    message: str = Field(description="one sentence, and the remedy")
