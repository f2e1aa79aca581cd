"""The context in which a graph is used."""

from dataclasses import dataclass, field

from langchain_core.runnables import RunnableConfig

from .commit_points import CommitPoints
from .messages import Message, RunKey
from .root_chunks import RootChunks


@dataclass
class Scope:
    """The context in which a graph is used. LangGraph passes it in `configurable` to every call, including in subgraphs."""

    # The run that writes; None for queries.
    run: RunKey | None = None
    # The thread's newest root checkpoint, [data]. Emptied by its first use or the run's first checkpoint.
    head: list[Message | None] = field(default_factory=list)
    commits: CommitPoints | None = None
    root_chunks: RootChunks | None = None
    # Whether this run or an earlier one has consumed the resume value of the checkpoint.
    is_resume_consumed: bool = False
    # A run whose checkpoints and writes are ignored.
    without: str | None = None
    metadata: Message | None = None
    # The checkpoints and writes of a state update, which are stored together.
    staged: tuple[list[Message], list[Message]] | None = None

    def stage(self, write: Message) -> bool:
        """Collects a write of a state update. Returns False if the scope does not belong to a state update."""
        if self.staged is None:
            return False
        puts, writes = self.staged
        if write["op"] == "put":
            puts.append(write["checkpoint"])
        else:
            writes.append({key: value for key, value in write.items() if key != "op"})
        return True

    def staged_checkpoint(self, checkpoint_ns: str, checkpoint_id: str | None) -> Message | None:
        """Returns a checkpoint of the state update with its writes. Without an id, the newest one."""
        puts, _ = self.staged or ([], [])
        for row in reversed(puts):
            if row["checkpoint_ns"] == checkpoint_ns and checkpoint_id in (None, row["checkpoint_id"]):
                return {**row, "writes": self.staged_writes(checkpoint_ns, row["checkpoint_id"])}
        return None

    def staged_writes(self, checkpoint_ns: str, checkpoint_id: str) -> list[Message]:
        """Returns the writes of the state update to a checkpoint, which may be a stored one."""
        _, writes = self.staged or ([], [])
        return [
            write
            for at in writes
            if at["checkpoint_ns"] == checkpoint_ns and at["checkpoint_id"] == checkpoint_id
            for write in at["writes"]
        ]


SCOPE = "__threadmill_scope"
_NO_SCOPE = Scope()


def scope_of(config: RunnableConfig) -> Scope:
    """Returns the scope of a config that LangGraph passes."""
    scope = config.get("configurable", {}).get(SCOPE)
    return scope if isinstance(scope, Scope) else _NO_SCOPE


def own_config(config: RunnableConfig, thread_id: str, checkpoint_ns: str, checkpoint_id: str) -> RunnableConfig:
    """Returns a reference to a checkpoint, with the scope of `config`."""
    own = {"thread_id": thread_id, "checkpoint_ns": checkpoint_ns, "checkpoint_id": checkpoint_id}
    scope = config.get("configurable", {}).get(SCOPE)
    return {"configurable": own if scope is None else {**own, SCOPE: scope}}
