"""A chat agent with two tools, in Python. A refund requires the approval of a person. Its model is scripted, so it needs no key."""

import re
from uuid import uuid4

from langchain_core.messages import AIMessage, AnyMessage, ToolCall, ToolMessage
from langgraph.config import get_stream_writer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

ORDERS = {
    "1042": {"item": "walking boots", "price": 129.0, "status": "shipped", "arrival": "Thursday"},
    "1043": {"item": "rain jacket", "price": 89.0, "status": "being packed", "arrival": "Monday"},
    "1044": {"item": "tent", "price": 310.0, "status": "delivered", "arrival": "last week"},
}


def answer_of(message: ToolMessage) -> str:
    """The scripted model repeats the result of the tool."""
    return str(message.content)


async def model(state: MessagesState) -> dict[str, list[AnyMessage]]:
    """Calls a tool for the order in the question, and answers with the result."""
    last = state["messages"][-1]
    if isinstance(last, ToolMessage):
        return {"messages": [AIMessage(answer_of(last))]}
    found = re.search(r"\d{4}", str(last.content))
    if not found:
        return {"messages": [AIMessage("Which order is it about? Orders have four digits.")]}
    name = "refund" if "refund" in str(last.content).lower() else "look_up"
    call = ToolCall(name=name, args={"order": found.group()}, id=str(uuid4()))
    return {"messages": [AIMessage("", tool_calls=[call])]}


def route(state: MessagesState) -> str:
    """Continues with the tool that the model has called."""
    last = state["messages"][-1]
    return last.tool_calls[0]["name"] if isinstance(last, AIMessage) and last.tool_calls else END


def call_of(state: MessagesState) -> ToolCall:
    """The tool call of the last message."""
    last = state["messages"][-1]
    assert isinstance(last, AIMessage)
    return last.tool_calls[0]


def look_up(state: MessagesState) -> dict[str, list[AnyMessage]]:
    """Describes an order. A synchronous node runs in a thread."""
    call = call_of(state)
    number = call["args"]["order"]
    get_stream_writer()({"looked_up": number})
    order = ORDERS.get(number)
    text = (
        f"Order {number} ({order['item']}) is {order['status']}. It arrives: {order['arrival']}."
        if order
        else f"There is no order {number}."
    )
    return {"messages": [ToolMessage(text, tool_call_id=call["id"])]}


async def refund(state: MessagesState) -> Command[str]:
    """Waits for a person, who may take days: the run ends, and a new run continues here with the answer."""
    call = call_of(state)
    number = call["args"]["order"]
    order = ORDERS.get(number)
    if order is None:
        text = f"There is no order {number}."
    else:
        answer = interrupt({"question": f"Refund ${order['price']:.2f} for order {number} ({order['item']})?"})
        is_approved = isinstance(answer, dict) and answer.get("decision") == "approve"
        text = f"${order['price']:.2f} will be refunded." if is_approved else "The refund was refused."
    return Command(goto="model", update={"messages": [ToolMessage(text, tool_call_id=call["id"])]})


builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_node("look_up", look_up)
builder.add_node("refund", refund)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", route, ["look_up", "refund", END])
builder.add_edge("look_up", "model")
graph = builder.compile()
