"""Protocols that people write: their language, where they come from, and what they ask of rows."""

from adacos.protocols.graph import ProtocolGraph, bind
from adacos.protocols.protocol import DecisionProtocol

__all__ = ["DecisionProtocol", "ProtocolGraph", "bind"]
