"""Executes LangGraph graphs written in Python for the Threadmill service."""
